# frozen_string_literal: true

module Hashmere
  # A set of up to 1024 shared atomics with names, in the store's file. {Store#clear} leaves it as it is, a backup does not copy it, and after
  # a crash of the machine a durable store is rebuilt without it. After a fork open it again in the child.
  #
  #   hits = Hashmere::Atomics.open(store, "counters").atomic("hits")
  #   hits.fetch_add
  class Atomics
    # @!method self.open(store, name)
    #   Opens a set, and creates it if it is missing. @return [Atomics]
    # @!method self.remove(store, name)
    #   Takes a set's name off it. @return [Boolean] whether there was one
    # @!method atomic(name)
    #   The atomic of this name, of 1 to 56 bytes; made if it is missing, and kept until the set is removed. @return [Atomic]
  end

  # A word of 64 bits, 0 at first, that processes read and change in place, each operation by one instruction. A process that dies has done
  # each wholly or not at all. Those that change it wake those who wait. It is no key: no part of transactions, of the change feed or of what
  # clients of a server see.
  class Atomic
    # @!method load
    #   @return [Integer] the value, from 0 to 2**64 - 1
    # @!method store(value)
    #   Stores a value. @return [nil]
    # @!method swap(value)
    #   Stores a value. @return [Integer] the value before
    # @!method fetch_add(by = 1)
    #   Adds, modulo 2**64, a negative number too. @return [Integer] the value before
    # @!method fetch_and(value)
    #   Clears the bits that are not set in `value`. @return [Integer] the value before
    # @!method fetch_or(value)
    #   Sets the bits of `value`. @return [Integer] the value before
    # @!method fetch_xor(value)
    #   Flips the bits of `value`. @return [Integer] the value before
    # @!method compare_exchange(current, value)
    #   Stores `value` if the value is `current`. @return [Integer] the value before, which says whether it was

    # Waits until the value is another than `seen`.
    # @param timeout [Numeric, nil] seconds; nil: no limit
    # @return [Integer, nil] the value then; nil: it was `seen` whenever it was looked at
    def wait(seen, timeout: nil) = _wait(seen, Attributes.timeout_ms(timeout))
  end
end
