# frozen_string_literal: true

require "json"

module Hashmere
  # JSON as a coder: values come back as JSON knows them (Symbols as Strings). No class of the reader is created.
  module JSONCoder
    def self.dump(value) = JSON.generate(value)
    def self.load(text) = JSON.parse(text)
  end

  # A store whose values are objects: what a coder makes of them with `dump`, and makes them of with `load`. See {Store#coded}.
  #
  # Marshal runs code of the writer of the value, so it is used only when it is given by name: `store.coded(Marshal)`.
  # nil is a value like others where the coder can store it; `fetch` and `key?` tell it from an absent key.
  class Coded
    include Enumerable

    attr_reader :store, :coder

    def initialize(store, coder)
      coder = JSONCoder if coder.equal?(JSON)
      unless coder.respond_to?(:dump) && coder.respond_to?(:load)
        raise TypeError, "a coder has to respond to dump and load: #{coder.inspect}"
      end

      @store = store
      @coder = coder
    end

    def [](key) = load(@store[key])
    alias get []

    def []=(key, value)
      @store[key] = dump(value)
    end

    def set(key, value, **attributes) = @store.set(key, dump(value), **attributes)
    def add(key, value, **attributes) = @store.add(key, dump(value), **attributes)
    def replace(key, value, **attributes) = @store.replace(key, dump(value), **attributes)

    # As {Store#cas}, by version only: the same object need not have the same bytes.
    def cas(key, value, version:, **attributes) = @store.cas(key, dump(value), version: version, **attributes)

    # As {Store#update}; the block may be called again, with an object of its own each time.
    def update_with(key, **attributes)
      load(@store.update_with(key, **attributes) do |old|
        value = yield(load(old))
        value.nil? || REMOVE.equal?(value) ? value : dump(value)
      end)
    end

    def fetch(key, *default, &block)
      text = @store[key]
      text.nil? ? @store.fetch(key, *default, &block) : load(text)
    end

    def delete(key) = load(@store.delete(key))
    def values_at(*keys) = @store.values_at(*keys).map { |text| load(text) }

    def set_many(pairs, **attributes)
      @store.set_many(pairs.to_h.transform_values { |value| dump(value) }, **attributes)
    end

    def each(**filter)
      return to_enum(:each, **filter) { size if filter.empty? } unless block_given?

      @store.each(**filter) { |key, text| yield [key, load(text)] }
      self
    end
    alias each_pair each

    def values = @store.values.map { |text| load(text) }
    def key?(key) = @store.key?(key)
    alias include? key?
    alias member? key?
    def keys(**filter) = @store.keys(**filter)
    def size = @store.size
    alias length size
    def empty? = @store.empty?
    def close = @store.close
    def remove = @store.remove

    def clear
      @store.clear
      self
    end

    private

    def dump(value)
      text = @coder.dump(value)
      text.is_a?(String) ? text : raise(TypeError, "#{@coder.inspect}.dump returned #{text.class}, not a String")
    end

    def load(text) = text.nil? ? nil : @coder.load(text)
  end

  class Store
    # The same store with objects for values: as JSON, or by any coder that has `dump` and `load`.
    def coded(coder = JSONCoder) = Coded.new(self, coder)
  end
end
