# frozen_string_literal: true

module Hashmere
  # Keys and values of any kind, as localmemcache took them: the option `to_s` of a store.
  # @private
  module Converting
    KEYS = %i[[] get key? has_key? include? member? fetch delete delete? incr decr get_item version flags value_len ttl expires_at touch
              get_and_touch gat uid_of id_of view reserve update_with inc_ref dec_ref cursor_of wait lock read_lock write_lock once dig].freeze
    PAIRS = %i[[]= store set add replace cas append prepend].freeze

    def self.text(object)
      case object
      when String, Symbol, Uid, EntryId, HashedKey then object
      when nil then "nil"
      else object.to_s
      end
    end

    # A value has no names but its bytes.
    def self.value(object)
      object.is_a?(Symbol) ? object.name : text(object)
    end

    KEYS.each do |name|
      define_method(name) { |key, *rest, **options, &block| super(Converting.text(key), *rest, **options, &block) }
    end
    PAIRS.each do |name|
      define_method(name) { |key, value, **options| super(Converting.text(key), Converting.value(value), **options) }
    end

    def values_at(*keys)
      super(*keys.map { |key| Converting.text(key) })
    end

    def slice(*keys)
      super(*keys.map { |key| Converting.text(key) })
    end

    def delete_many(keys)
      super(keys.map { |key| Converting.text(key) })
    end

    def set_many(pairs, **options)
      super(pairs.to_h.to_h { |key, value| [Converting.text(key), Converting.value(value)] }, **options)
    end
  end
end
