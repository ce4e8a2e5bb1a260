# frozen_string_literal: true

module Hashmere
  class Store
    # Follows the changes of this store, which has to keep some: `Hashmere.open(name, feed: 64 << 20)`, or {Feed.enable}.
    # @param start [String, Symbol] `:now`: with the next change; `:start`: with every key, then the changes; a token: behind what was dealt with
    #   before, or with every key if that is not possible
    # @param prefix [String] only keys that begin with it; a clear and a reset concern every key
    # @param values [Boolean] values come along; those that the feed does not keep are read from the store
    # @return [Feed] or, with a block, what the block returns; the feed is closed behind it
    def feed(start = :now, prefix: "", values: false)
      feed = Feed.open(self, start, prefix: prefix, values: values)
      return feed unless block_given?

      begin
        yield feed
      ensure
        feed.close
      end
    end
  end

  # A consumer of a store's changes: {Store#feed}. One thread at a time may use it; it belongs to the process that opened it.
  #
  #   store.feed(token_of_before, values: true) do |feed|
  #     feed.each do |event|                           # waits without end; Ctrl-C and Timeout are heard
  #       apply(event)
  #       keep(event.token)
  #     end
  #   end
  #
  # Every change comes at least once, all of a transaction together, and those of a key in the order in which they were committed.
  class Feed
    include Enumerable

    # @private
    KINDS = %i[reset read synced change clear].freeze
    # @private
    OPERATIONS = %i[read set delete touch evict expire].freeze
    # @private
    REASONS = %i[asked gone other_feed gap].freeze
    # @private
    STATES = %i[absent bytes not_kept superseded].freeze
    private_constant :KINDS, :OPERATIONS, :REASONS, :STATES

    # As {Store#feed}, without a block. @return [Feed]
    def self.open(store, start = :now, prefix: "", values: false)
      _open(store, start.to_s, prefix, values)
    end

    # Makes a store keep about this many bytes of changes, for all processes that have it open. A feed that is there stays as it is. @return [nil]
    def self.enable(store, bytes, values: false)
      _enable(store, bytes, values)
    end

    # Makes a store keep no changes, and gives back what they took. @return [Boolean] false: it kept none
    def self.disable(store)
      _disable(store)
    end

    # The feed of a store: its `number`, the `position` of the next entry, the `oldest` that is still kept, its `bytes`, whether it keeps `values`.
    # @return [Hash{Symbol => Object}, nil] nil: it keeps no changes
    def self.info(store)
      _info(store)
    end

    # The next event, for which it waits as many seconds as `timeout` says (nil: forever).
    # @return [Event, nil] nil: none came
    def next(timeout = nil)
      parts = _next(Attributes.timeout_ms(timeout))
      parts && Event.from(parts)
    end

    # Each event, for which it waits without end.
    def each
      return to_enum unless block_given?

      loop { yield self.next }
    end

    # Readable while there is an event, for `IO.select` and event loops. A thread of the library raises it; {#next} takes that back when it finds none:
    # call it with a timeout of 0 until it returns nil. It belongs to the feed: do not read or close it.
    # @return [IO]
    def to_io
      descriptor = _fileno
      @io ||= IO.for_fd(descriptor, autoclose: false)
    end

    # A transaction that a change is part of: its `id`, which of its changes this is (`index`), and how many there are (`len`).
    Transaction = Struct.new(:id, :index, :len)

    # One step of a feed. Its `kind` is `:reset` (for a `reason`: every key follows as `:read`, then `:synced`, and what is not among them is gone),
    # `:read`, `:synced`, `:change` or `:clear` (every key was removed at once). Of a key: the `operation` (`:read`, `:set`, `:delete`, `:touch`,
    # `:evict`, `:expire`), the `key`, its `value` if that is here (`value_state` is `:bytes`; else `:absent`, `:not_kept`, or `:superseded`: a later
    # event has it) and its length, the `version`, `flags`, `expires_at_ms`, the `origin` of the handle that made the change, when it happened
    # (`ts_ms`), the {Feed::Transaction} that it is part of, and the `supplied_hash`. `token` is where a consumer resumes that has dealt with it.
    Event = Struct.new(:kind, :operation, :key, :value, :value_state, :value_len, :version, :flags, :expires_at_ms, :origin, :ts_ms, :transaction,
                       :supplied_hash, :reason, :token) do
      # @private
      def self.from(parts)
        kind, operation, reason, state, key, value, version, expires, ts, len, flags, origin, hash, id, index, count, token = parts
        kind = KINDS[kind]
        part = count.zero? ? nil : Transaction.new(id, index, count)
        new(kind, key && OPERATIONS[operation], key, value, key && STATES[state], len, version, flags, expires.zero? ? nil : expires, origin, ts, part,
            hash, kind == :reset ? REASONS[reason] : nil, token)
      end
    end

    private_class_method :_open, :_enable, :_disable, :_info
  end
end
