# frozen_string_literal: true

require "json"

module Hashmere
  # JSON as a coder: values come back as JSON knows them (Symbols as Strings). No class of the reader is created.
  module JSONCoder
    def self.dump(value)
      JSON.generate(value)
    end

    def self.load(text)
      JSON.parse(text)
    end
  end

  # A store whose values are objects: what a coder makes of them with `dump`, and makes them of with `load`. See {Store#coded}.
  #
  # Marshal runs code of the writer of the value, so it is used only when it is given by name: `store.coded(Marshal)`.
  # nil is a value like others where the coder can store it; `fetch` and `key?` tell it from an absent key.
  class Coded
    include Enumerable

    attr_reader :coder

    def initialize(store, coder)
      coder = JSONCoder if coder.equal?(JSON)
      unless coder.respond_to?(:dump) && coder.respond_to?(:load)
        raise TypeError, "a coder has to respond to dump and load: #{coder.inspect}"
      end

      @store = store
      @coder = coder
    end

    def [](key)
      load(@store[key])
    end

    alias get []

    def []=(key, value)
      @store[key] = dump(value)
    end

    def set(key, value, **attributes)
      @store.set(key, dump(value), **attributes)
    end

    def add(key, value, **attributes)
      @store.add(key, dump(value), **attributes)
    end

    def replace(key, value, **attributes)
      @store.replace(key, dump(value), **attributes)
    end

    # As {Store#cas}, by version only: the same object need not have the same bytes.
    def cas(key, value, version:, **attributes)
      @store.cas(key, dump(value), version: version, **attributes)
    end

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

    # The store of Strings; with a key and a value it stores that, as of a Hash.
    def store(*pair)
      return @store if pair.empty?
      raise ArgumentError, "wrong number of arguments (given #{pair.size}, expected 0 or 2)" unless pair.size == 2

      self[pair[0]] = pair[1]
    end

    # What digs on in the object of a key, as of a Hash.
    def dig(key, *rest)
      value = self[key]
      rest.empty? || value.nil? ? value : value.dig(*rest)
    end

    # As {Store#delete?}, by version only.
    def delete?(key, version: nil)
      @store.delete?(key, version: version)
    end

    def delete_many(keys)
      @store.delete_many(keys)
    end

    def incr(key, *by, **attributes)
      @store.incr(key, *by, **attributes)
    end

    def decr(key, *by, **attributes)
      @store.decr(key, *by, **attributes)
    end

    def version(key)
      @store.version(key)
    end

    def ttl(key)
      @store.ttl(key)
    end

    def touch(key, **expiry)
      @store.touch(key, **expiry)
    end

    # Gives a key another expiry and returns its object; nil: absent.
    def get_and_touch(key, **expiry)
      load(@store.get_and_touch(key, **expiry)&.value)
    end

    # As {Store#once}; the block returns an object.
    def once(key, **options)
      load(@store.once(key, **options) { dump(yield) })
    end

    # A random pair; nil: the store is empty.
    def random
      key, text = @store.random
      key && [key, load(text)]
    end

    # Removes a random pair and returns it; nil: the store is empty.
    def shift
      key, text = @store.shift
      key && [key, load(text)]
    end

    def slice(*keys)
      @store.slice(*keys).transform_values { |text| load(text) }
    end

    alias get_multi slice

    def merge!(*hashes)
      hashes.each { |pairs| set_many(pairs) }
      self
    end
    alias update merge!

    def to_h(&block)
      block ? super : each_with_object({}) { |(key, value), hash| hash[key] = value }
    end

    def delete(key)
      load(@store.delete(key))
    end

    def values_at(*keys)
      @store.values_at(*keys).map { |text| load(text) }
    end

    def set_many(pairs, **attributes)
      @store.set_many(pairs.to_h.transform_values { |value| dump(value) }, **attributes)
    end

    def each(**filter)
      return to_enum(:each, **filter) { size if filter.empty? } unless block_given?

      @store.each(**filter) { |key, text| yield [key, load(text)] }
      self
    end
    alias each_pair each

    def values
      @store.values.map { |text| load(text) }
    end

    def key?(key)
      @store.key?(key)
    end

    alias has_key? key?
    alias include? key?
    alias member? key?
    def keys(**filter)
      @store.keys(**filter)
    end

    def size
      @store.size
    end

    alias length size
    def empty?
      @store.empty?
    end

    def close
      @store.close
    end

    def closed?
      @store.closed?
    end

    def remove
      @store.remove
    end

    def clear
      @store.clear
      self
    end

    private

    def dump(value)
      text = @coder.dump(value)
      text.is_a?(String) ? text : raise(TypeError, "#{@coder.inspect}.dump returned #{text.class}, not a String")
    end

    def load(text)
      text.nil? ? nil : @coder.load(text)
    end
  end

  class Store
    # The same store with objects for values: as JSON, or by any coder that has `dump` and `load`.
    def coded(coder = JSONCoder)
      Coded.new(self, coder)
    end
  end
end
