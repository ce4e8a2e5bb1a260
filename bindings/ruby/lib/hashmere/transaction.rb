# frozen_string_literal: true

module Hashmere
  # Operations on up to 1,024 keys that are done at one moment, in order: a later one sees what an earlier one does. It belongs to no
  # store, and may be written any number of times. Keys are Strings or Symbols. Each method returns the batch.
  #
  #   batch = Hashmere::WriteBatch.new
  #   batch.incr("alice", -30).incr("bob", 30)
  #   store.write_batch(batch) # => [70, 130]
  class WriteBatch
    def initialize
      @kinds = []
    end

    # Stores a value. A `ttl` is reckoned from the write. Its result: the version
    def set(key, value, ttl: nil, expires_at: nil, flags: 0)
      _set(Hashmere._text(key), value, flags, *Attributes.expiry(ttl, expires_at))
      added(:set)
    end

    # Removes a key. Its result: whether it was there
    def delete(key)
      _delete(Hashmere._text(key))
      added(:is)
    end

    # Adds to a counter, or subtracts, stopping at zero; a missing one is created with `initial`, or left missing. Its result: the number,
    # or nil
    def incr(key, by = 1, initial: nil, ttl: nil, expires_at: nil, flags: 0)
      _incr(Hashmere._text(key), by, initial, flags, *Attributes.expiry(ttl, expires_at))
      added(:number)
    end

    # Subtracts: see {#incr}.
    def decr(key, by = 1, **with)
      incr(key, -by, **with)
    end

    # Adds to a signed counter, which may be below zero; beyond 64 bits the write raises `Overflow`. Else as {#incr}
    def incr_signed(key, by = 1, initial: nil, ttl: nil, expires_at: nil, flags: 0)
      _incr_signed(Hashmere._text(key), by, initial, flags, *Attributes.expiry(ttl, expires_at))
      added(:signed_number)
    end

    # Adds to a decimal fraction, exactly; what is not finite is refused by the write. Its result: the number next to the sum, or nil. Else
    # as {#incr}
    def incr_float(key, by, initial: nil, ttl: nil, expires_at: nil, flags: 0)
      _incr_float(Hashmere._text(key), by, initial, flags, *Attributes.expiry(ttl, expires_at))
      added(:float_number)
    end

    # Puts bytes behind a value. Its result: whether the key was there
    def append(key, tail)
      _append(Hashmere._text(key), tail)
      added(:is)
    end

    # Puts bytes in front of a value. Its result: whether the key was there
    def prepend(key, head)
      _prepend(Hashmere._text(key), head)
      added(:is)
    end

    # Gives a key another expiry; none: it lives forever. Its result: whether the key was there
    def touch(key, ttl: nil, expires_at: nil)
      _touch(Hashmere._text(key), *Attributes.expiry(ttl, expires_at))
      added(:is)
    end

    # Reads a key. Its result: {Item}, or nil; if an earlier operation of the batch wrote it, its version is 0
    def get(key)
      _get(Hashmere._text(key))
      added(:item)
    end

    # Takes all operations out.
    def clear
      _clear
      @kinds.clear
      self
    end

    # How many operations there are.
    def size
      @kinds.size
    end

    alias length size

    def empty?
      @kinds.empty?
    end

    # @private
    def self.results(batch, shown)
      shown.zip(batch.instance_variable_get(:@kinds)).map do |(is, numbers, version, parts), kind|
        case kind
        when :set then version
        when :number then is ? numbers[0] : nil
        when :signed_number then is ? numbers[1] : nil
        when :float_number then is ? numbers[2] : nil
        when :item then parts && Item.from(parts)
        else is
        end
      end
    end

    private

    def initialize_copy(_other)
      raise(TypeError, "a batch cannot be copied")
    end

    def added(kind)
      @kinds << kind
      self
    end
  end

  # What a key must be for the first batch of {Store#write_batch_if} to be written.
  class Condition
    # @private
    attr_reader :kind, :key, :value, :version

    # This key is absent.
    def self.absent(key)
      new(0, key)
    end

    # This key is there.
    def self.present(key)
      new(1, key)
    end

    # This key is at this version; 0: it is absent.
    def self.version(key, version)
      new(2, key, version: version)
    end

    # This key has exactly this value.
    def self.value(key, value)
      new(3, key, value: value)
    end

    # @private
    def initialize(kind, key, value: "", version: 0)
      @kind, @key, @value, @version = kind, Hashmere._text(key), value, version
      freeze
    end
    private_class_method :new
  end

  # Which batch was written, and what its operations did: `succeeded`, `results`.
  Branch = Struct.new(:succeeded, :results, keyword_init: true)

  # What the block of {Store#transaction} reads and writes with. Reads see what it wrote, and else the store. Keys are Strings or Symbols.
  class Transaction
    alias get []
    alias has_key? key?
    alias include? key?

    # Stores a value without attributes.
    def []=(key, value)
      _set(key, value, 0, Attributes::NEVER, 0)
    end

    # Stores a value. @return [self]
    def set(key, value, ttl: nil, expires_at: nil, flags: 0)
      _set(key, value, flags, *Attributes.expiry(ttl, expires_at))
    end

    # Adds to a counter, or subtracts, stopping at zero; a missing one is created with `initial`, or left missing.
    # @return [Integer, nil] its new value; nil: there is none
    def incr(key, by = 1, initial: nil, ttl: nil, expires_at: nil, flags: 0)
      _incr(key, by, initial, flags, *Attributes.expiry(ttl, expires_at))
    end

    # Subtracts: see {#incr}.
    def decr(key, by = 1, **with)
      incr(key, -by, **with)
    end

    # Adds to a signed counter, which may be below zero; beyond 64 bits `Overflow` is raised. Else as {#incr}.
    def incr_signed(key, by = 1, initial: nil, ttl: nil, expires_at: nil, flags: 0)
      _incr_signed(key, by, initial, flags, *Attributes.expiry(ttl, expires_at))
    end

    # Adds to a decimal fraction, exactly. @return [Float, nil] the number next to the sum. Else as {#incr}
    def incr_float(key, by, initial: nil, ttl: nil, expires_at: nil, flags: 0)
      _incr_float(key, by, initial, flags, *Attributes.expiry(ttl, expires_at))
    end

    # Gives a key another expiry; none: it lives forever. @return [Boolean] false: the key is absent
    def touch(key, ttl: nil, expires_at: nil)
      _touch(key, *Attributes.expiry(ttl, expires_at))
    end
  end

  # Several keys at one moment, for every reader in every process, or none: also if the process is killed in the middle.
  class Store
    # Runs the block with a {Transaction} and then does all that it wrote at one moment, provided that everything that it read is unchanged
    # then.
    #
    # **The block may run several times**: when others changed what it read, nothing has happened, and it is called again. So it must have
    # no effects but through the transaction. No lock is held while it runs. If it raises, or leaves by `break` or `throw`, nothing has
    # happened. An exception (StandardError) that comes from values that were not there at one moment is not raised: the block runs again.
    #
    #   store.transaction do |t|
    #     t.decr("alice", 30)
    #     t.incr("bob", 30, initial: 30)
    #   end
    # @return what the block returns; `Conflict` is raised if others changed what it read each of 1,000 times, for 5 seconds
    def transaction
      raise ArgumentError, "a block is needed" unless block_given?

      t = _begin
      begin
        loop do
          begin
            result = yield t
          rescue StandardError
            raise if t.send(:_rollback)

            next
          end
          return result if t.send(:_commit)
        end
      ensure
        t.send(:_close)
      end
    end

    # Does all operations of a batch at one moment. With a block, that is given a new batch to fill.
    #
    #   store.write_batch { |b| b.set("a", "1").delete("b") }
    # @return [Array] what each operation did: see {WriteBatch}
    def write_batch(batch = nil)
      raise ArgumentError, "give a batch or a block" if batch.nil? != block_given?

      yield batch = WriteBatch.new unless batch
      WriteBatch.results(batch, _write_batch(batch).last)
    end

    # Does the one batch if all conditions hold, else the other one (nil: nothing); conditions and batch at one moment.
    #
    #   lead = [Hashmere::Condition.absent("leader")]
    #   store.write_batch_if(lead, Hashmere::WriteBatch.new.set("leader", "me", ttl: 10)).succeeded
    # @param conditions [Array<Condition>]
    # @return [Branch]
    def write_batch_if(conditions, batch, otherwise = nil)
      all = Array(conditions)
      wrong = all.find { |one| !one.is_a?(Condition) }
      raise TypeError, "a condition has to be a Hashmere::Condition, not #{wrong.class}" if wrong

      held, shown = _write_batch_if(all.map(&:kind), all.map(&:key), all.map(&:value), all.map(&:version), batch, otherwise)
      Branch.new(succeeded: held, results: shown.empty? ? [] : WriteBatch.results(held ? batch : otherwise, shown))
    end

    # The items of several keys as they were at one moment of this call. It takes no lock and keeps no writer waiting.
    # @return [Array<Item, nil>] nil where a key is absent; `Conflict` is raised if one of them was changed each of 1,000 times
    def get_many_snapshot(*keys)
      _get_many_snapshot(keys).map { |parts| parts && Item.from(parts) }
    end
  end
end
