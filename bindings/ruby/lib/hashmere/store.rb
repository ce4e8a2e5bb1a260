# frozen_string_literal: true

module Hashmere
  # An open store, used like a Hash whose keys and values are Strings.
  #
  # Keys may be Symbols, which mean their names. Bytes are stored as they are; what is read is tagged with the encoding of the
  # store. It may be used by any number of threads and goes on working in forked children. It cannot be used from a Ractor other
  # than the main one. Iteration has no order; a key that exists all the time is seen exactly once.
  class Store
    include Enumerable

    # @private
    NONE = Object.new.freeze
    private_constant :NONE

    # @param name [String, #to_path] see {Hashmere.open}
    # @param create [Boolean] false: `NotFound` if there is none
    # @param create_new [Boolean] `AlreadyExists` if there is one
    # @param cache [Boolean, nil] a full store drops what expired, then what was not used, instead of raising `Full`
    # @param max_bytes [Integer, nil] the memory that the file may take, needed to create a cache; a store that exists gets this
    #   maximum, for all processes that have it open: a cache drops what was not used, a strict one refuses less than its keys take
    # @param busy_timeout [Numeric] seconds that a write waits for a lock before `Busy`
    # @param durable [Boolean] survives power cuts up to the last {#sync}
    # @param sync_every [Numeric, nil] a write that finds the last sync this many seconds old syncs
    # @param encoding [Encoding, String] what is read is tagged with it
    # @param feed [Integer, nil] keep about this many bytes of changes, for consumers: {Store#feed}; a store that keeps changes goes on as it is
    # @param feed_values [Boolean] changes are kept with their values, where `feed` makes the feed
    # @param to_s [Boolean] keys and values that are no Strings are taken as their `to_s`, nil as "nil", as localmemcache did
    # @param origin [Integer] marks all changes that are made through this handle
    def initialize(name, create: true, create_new: false, read_only: false, cache: nil, max_bytes: nil, expected_items: nil,
                   busy_timeout: 5, durable: false, sync_every: nil, segment_bytes: nil, leaf_bytes: nil, fixed_key_len: nil,
                   fixed_value_len: nil, permissions: nil, remove_on_last_close: false, allow_foreign_owner: false,
                   no_values: false, encoding: Encoding::UTF_8, feed: nil, feed_values: false, origin: 0, to_s: false)
      unless Ractor.current.equal?(Ractor.main)
        raise TypeError, "a store cannot be used in a Ractor other than the main one: open it there, or use processes or threads"
      end

      flags = 0
      { NO_CREATE: !create, CREATE_NEW: create_new, READ_ONLY: read_only, STRICT: cache == false, CACHE: cache, DURABLE: durable,
        DELETE: remove_on_last_close, FOREIGN: allow_foreign_owner, NO_VALUES: no_values, FEED_VALUES: feed_values }
        .each { |flag, set| flags |= OpenFlags.const_get(flag) if set }
      numbers = [flags, max_bytes, expected_items, sync_every && Attributes.milliseconds(sync_every, "sync_every"),
                 segment_bytes, leaf_bytes, fixed_key_len, fixed_value_len, permissions, feed, origin].map { |number| number || 0 }
      timeout = Attributes.milliseconds(busy_timeout, "busy_timeout")
      open_or_collect { _open(Hashmere._name(name), encoding, timeout, numbers) }
      extend(Converting) if to_s
    end

    # @private
    def initialize_copy(_)
      raise TypeError, "a store has no dup or clone: open it again by its path for another handle, or make a backup"
    end

    alias get []
    alias store []=
    alias has_key? key?
    alias include? key?
    alias member? key?
    alias length size

    # The value, or the default, or what the block makes of the key. KeyError without either, as of a Hash.
    def fetch(key, default = NONE)
      value = self[key]
      return value unless value.nil?
      return yield(key) if block_given?
      return default unless NONE.equal?(default)

      raise KeyError.new("key not found: #{key.inspect}", receiver: self, key: key)
    end

    # Stores a value. `ttl` is in seconds, `expires_at` a Time; `flags` are 32 bits of yours.
    # @return [Integer] the version that it gave the key
    def set(key, value, ttl: nil, expires_at: nil, flags: 0)
      _set(key, value, flags, *Attributes.expiry(ttl, expires_at))
    end

    # Stores a value if the key is absent. @return [Integer, nil] its version; nil: the key is there
    def add(key, value, ttl: nil, expires_at: nil, flags: 0)
      _add(key, value, flags, *Attributes.expiry(ttl, expires_at))
    end

    # Stores a value if the key is there. @return [Integer, nil] its version; nil: it is not
    def replace(key, value, ttl: nil, expires_at: nil, flags: 0)
      _replace(key, value, flags, *Attributes.expiry(ttl, expires_at))
    end

    # Stores a value if the key has this version (0: is absent) or this value. @return [Integer, nil] its version; nil: not so
    def cas(key, value, version: nil, expected: nil, ttl: nil, expires_at: nil, flags: 0)
      raise ArgumentError, "give version or expected" if version.nil? == expected.nil?

      expiry = Attributes.expiry(ttl, expires_at)
      return _cas_version(key, version, value, flags, *expiry) if version

      _cas_value(key, expected, value, flags, *expiry)
    end

    # Replaces a value by what the block makes of it (of nil, if the key is absent), atomically for that key: if another writer
    # changed it during the call, the block is called again; when that happens often, others let it go first, for up to 5 ms.
    # It may return nil to leave the key as it is, or {REMOVE}. No lock is held while the block runs, and it may use the store: it may read this key (as it is stored) and write others. If it writes this one, or clears
    # the store, {Reentered} is raised there. Without `ttl`, `expires_at` and `flags` the key keeps those that it has.
    # @return [String, nil] the value that the key has now
    def update_with(key, ttl: nil, expires_at: nil, flags: nil, &block)
      raise ArgumentError, "a block is needed" unless block

      lost = 0
      loop do
        if lost >= LOST_BEFORE
          lost = 0
          done = _update_first(key, flags, *(ttl || expires_at ? Attributes.expiry(ttl, expires_at) : [nil, 0]), &block)
          return done == true ? _item(key)&.first : done&.dup unless done == false
        end
        lost += 1
        old, value = _show(key, &block)
        return old && old[0] if value.nil?

        if REMOVE.equal?(value)
          return if old.nil? || _remove(key, old[1], nil)
        else
          kept = old && old[4].positive? ? [Attributes::AT, old[4]] : [Attributes::NEVER, 0]
          expiry = ttl || expires_at ? Attributes.expiry(ttl, expires_at) : kept
          return value if _cas_version(key, old ? old[1] : 0, value, flags || (old ? old[3] : 0), *expiry)
        end
      end
    end

    # How often {update_with} loses to other writers of its key before it asks them to let it go first.
    LOST_BEFORE = 16
    private_constant :LOST_BEFORE

    # Removes a key. @return [String, nil] its value; the block's, if there was none. Exactly one of several callers gets it.
    def delete(key)
      value = _take(key)
      value.nil? && block_given? ? yield(key) : value
    end

    # Removes a key, if it has this version or value. @return [Boolean] whether it did
    def delete?(key, version: nil, expected: nil)
      raise ArgumentError, "give version or expected, not both" if version && expected

      _remove(key, version, expected)
    end

    # Adds to a counter: a key whose value is a decimal number below 2**64, where it wraps. A negative step subtracts. A missing
    # key is created with `initial` (the step is not applied), or left missing.
    # @return [Integer, nil] its new value; nil: there is none
    def incr(key, by = 1, initial: nil, ttl: nil, expires_at: nil, flags: 0)
      raise TypeError, "the step has to be an Integer, not #{by.class}" unless by.is_a?(Integer)

      _count(key, by.abs, by.negative?, initial, flags, *Attributes.expiry(ttl, expires_at))
    end

    # Adds to a signed counter, which may be below zero; beyond 64 bits {Overflow} is raised, and it stays as it is. A missing key
    # is created with `initial` (the step is not applied), or left missing.
    # @return [Integer, nil] its new value; nil: there is none
    def incr_signed(key, by = 1, initial: nil, ttl: nil, expires_at: nil, flags: 0)
      _incr_signed(key, by, initial, flags, *Attributes.expiry(ttl, expires_at))
    end

    # Adds to a decimal fraction, exactly, with 17 digits behind the point. A missing key is created with `initial` (the step is
    # not applied), or left missing.
    # @return [Float, nil] the number next to the sum, whose text is the value; nil: there is none
    def incr_float(key, by, initial: nil, ttl: nil, expires_at: nil, flags: 0)
      _incr_float(key, by, initial, flags, *Attributes.expiry(ttl, expires_at))
    end

    # Subtracts from a counter, stopping at zero: see {#incr}.
    def decr(key, by = 1, initial: nil, ttl: nil, expires_at: nil, flags: 0)
      raise TypeError, "the step has to be an Integer, not #{by.class}" unless by.is_a?(Integer)

      _count(key, by.abs, !by.negative?, initial, flags, *Attributes.expiry(ttl, expires_at))
    end

    # Everything about a key: {Item}, or nil.
    def get_item(key)
      parts = _item(key)
      parts && Item.from(parts)
    end

    # The version of a key's value; it grows with every change. nil: absent
    def version(key)
      _metadata(key)&.at(1)
    end

    # The flags of a key. nil: absent
    def flags(key)
      _metadata(key)&.at(3)
    end

    # The length of a value in bytes. nil: absent
    def value_len(key)
      _metadata(key)&.at(5)
    end

    # Seconds that a key still lives; Float::INFINITY forever; nil: absent
    def ttl(key)
      ms = _ttl(key)
      ms && (ms.negative? ? Float::INFINITY : ms / 1000.0)
    end

    # When a key expires; nil: never, or absent
    def expires_at(key)
      parts = _metadata(key)
      parts && Item.time(parts[4])
    end

    # Gives a key another expiry; none: it lives forever. @return [Boolean] whether it is there
    def touch(key, ttl: nil, expires_at: nil)
      _touch(key, *Attributes.expiry(ttl, expires_at))
    end

    # Gives a key another expiry and returns all about it, in one step. @return [Item, nil]
    def get_and_touch(key, ttl: nil, expires_at: nil)
      parts = _get_and_touch(key, *Attributes.expiry(ttl, expires_at))
      parts && Item.from(parts)
    end

    # Copies the store to a new file as it is at one moment, while others go on. A block is called with the number of keys
    # copied and about how many there are.
    # @param replace [Boolean] replaces a store of that name, when the copy is complete; otherwise `BackupExists`
    # @return [Hash] `:items`, `:bytes_file`, and `:thinned`: whether a full cache dropped keys that were there at the moment
    def backup(path, replace: false, &progress)
      _backup(Hashmere._name(path), replace, progress)
    end

    # The values of several keys in order, nil where there is none.
    def values_at(*keys)
      _get_many(keys)
    end

    # Key and value of those that are there.
    def slice(*keys)
      keys.zip(_get_many(keys)).reject { |_, value| value.nil? }.to_h
    end

    # Stores the pairs of a Hash, all with the same attributes. @return [Integer] how many
    def set_many(pairs, ttl: nil, expires_at: nil, flags: 0)
      pairs = pairs.to_h
      _set_many(pairs.keys, pairs.values, flags, *Attributes.expiry(ttl, expires_at))
    end

    def merge!(*hashes)
      hashes.each { |pairs| set_many(pairs) }
      self
    end
    alias update merge!

    # Removes several keys. @return [Integer] how many were there
    def delete_many(keys)
      _delete_many(keys.to_a)
    end

    def empty?
      size.zero?
    end

    # A value in place: {View}, or nil. With a block it is released behind it. Of a value of at most 8 bytes it is a copy.
    def view(key)
      view = _acquire(key)
      return view unless block_given? && view

      begin
        yield view
      ensure
        view.release
      end
    end

    # Gives the block room for a value of `size` bytes in the file ({Reservation}), zeros at first. What it wrote there becomes
    # the key's value when the block ends; nothing happens if the block does not end by itself.
    # @return [Integer] the version
    def reserve(key, size, ttl: nil, expires_at: nil, flags: 0)
      room = _reserve(key, size, flags, *Attributes.expiry(ttl, expires_at))
      begin
        yield room
        room.send(:_commit)
      ensure
        room.send(:_abandon)
      end
    end

    # Closes the store and removes its file.
    def remove
      file = path
      close
      Hashmere.remove(file)
      nil
    end

    def inspect
      closed? ? "#<#{self.class} closed>" : "#<#{self.class} #{path}>"
    end
    alias to_s inspect

    private

    # An open store takes as many addresses as it may grow to, and a process has a limited number: stores that were forgotten
    # unclosed have to go first.
    def open_or_collect
      yield
    rescue Io => e
      raise unless e.os_error == Errno::ENOMEM::Errno

      GC.start
      yield
    end
  end
end
