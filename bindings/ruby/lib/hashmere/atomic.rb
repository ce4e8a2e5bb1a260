# frozen_string_literal: true

module Hashmere
  # A set of up to 1024 shared atomics with names, in the store's file. {Store#clear} leaves it as it is, a backup does not copy it, and after
  # a crash of the machine a durable store is rebuilt without it. After a fork open it again in the child.
  #
  #   hits = Hashmere::Atomics.open(store, "counters").atomic("hits")
  #   hits.fetch_add
  class Atomics
  end

  # A word of 64 bits, 0 at first, that processes read and change in place, each operation by one instruction. A process that dies has done
  # each wholly or not at all. Those that change it wake those who wait. It is no key: no part of transactions, of the change feed or of what
  # clients of a server see.
  class Atomic
    # Waits until the value is another than `seen`.
    # @param timeout [Numeric, nil] seconds; nil: no limit
    # @return [Integer, nil] the value then; nil: it was `seen` whenever it was looked at
    def wait(seen, timeout: nil)
      _wait(seen, Attributes.timeout_ms(timeout))
    end
  end
end
