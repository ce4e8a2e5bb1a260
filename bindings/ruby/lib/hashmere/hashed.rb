# frozen_string_literal: true

module Hashmere
  # The calls on keys for which the caller has a 64-bit hash already: {Store#hashed}. A key stored with a hash is found with the same hash
  # only; the same bytes stored without one, or with another, are another key.
  class Hashed
    # @private
    def initialize(store)
      @store = store
    end

    # The value, or nil.
    def get(key, hash) = @store.send(:_hashed_item, key, hash)&.first

    # Everything about a key: {Item}, or nil.
    def get_item(key, hash)
      parts = @store.send(:_hashed_item, key, hash)
      parts && Item.from(parts)
    end

    def key?(key, hash) = @store.send(:_hashed_key?, key, hash)

    # The key's number as long as it exists, or nil.
    def uid_of(key, hash) = @store.send(:_hashed_uid, key, hash)

    # @return [Integer] the version that it gave the key
    def set(key, hash, value, ttl: nil, expires_at: nil, flags: 0)
      @store.send(:_hashed_set, key, hash, value, flags, *Attributes.expiry(ttl, expires_at))
    end

    # Stores a value if the key is absent. @return [Integer, nil] its version; nil: the key is there
    def add(key, hash, value, ttl: nil, expires_at: nil, flags: 0)
      @store.send(:_hashed_add, key, hash, value, flags, *Attributes.expiry(ttl, expires_at))
    end

    # @return [Boolean] whether it was there
    def delete?(key, hash) = @store.send(:_hashed_remove, key, hash)

    # Adds to a counter: see {Store#incr}.
    # @return [Integer, nil] its new value; nil: there is none
    def incr(key, hash, by = 1, initial: nil, ttl: nil, expires_at: nil, flags: 0)
      @store.send(:_hashed_incr, key, hash, by, initial, flags, *Attributes.expiry(ttl, expires_at))
    end

    # Replaces a value by what the block makes of it, atomically for that key; flags and expiry stay. The block may return nil to leave
    # the key as it is, or {REMOVE}; it is called again if another writer changed the key.
    # @return [Boolean] whether something was stored or removed
    def update_with(key, hash, &block)
      raise ArgumentError, "a block is needed" unless block

      @store.send(:_hashed_update, key, hash, &block)
    end
  end
end
