# frozen_string_literal: true

require "active_support"
require "active_support/cache"
require "hashmere"

module ActiveSupport
  module Cache
    # A cache in a store that all processes of a machine share:
    #
    #   config.cache_store = :hashmere_store, "my-site", { max_bytes: 256 << 20, expires_in: 1.hour }
    #
    # Options beside those of every cache store are those of Hashmere::Store. A full cache drops what expired, then what was not
    # used. Entries are stored by the `coder` of the cache, Marshal by default as for every cache store: a process that may write the file
    # may run code in its readers. Values written with `raw: true` are stored as they are. `clear` empties the store under every
    # namespace.
    #
    # `increment` and `decrement` are atomic across processes. They count with raw values, and with entries whose value is a
    # number or reads as one, which keep their expiry. Of anything else they make nothing: nil, and a line in the log, as with
    # memcached and Redis.
    #
    # Another `max_bytes` is what the store has from then on; with less it drops what was not used. A value that does not fit is
    # not written (false, and a line in the log), and what was there under its name goes, so that no reader takes it for the new one.
    class HashmereStore < Store
      DEFAULT_MAX_BYTES = 256 << 20
      # Flags of a record: 0 is a raw value, which other languages can read.
      ENTRY = 1
      # How much longer than its entry a record lives, so that it can be handed out while one process makes the next.
      RACE_SECONDS = 300
      UNIVERSAL = %i[namespace compress compress_threshold expires_in race_condition_ttl coder skip_nil raw].freeze

      def self.supports_cache_versioning?
        true
      end

      # @return [Hashmere::Store]
      attr_reader :store

      def initialize(name = "rails-cache", options = nil)
        name, options = "rails-cache", name if name.is_a?(Hash)
        options = (options || {}).dup
        super(options.slice(*UNIVERSAL))
        @store = Hashmere.open(name, cache: true, max_bytes: DEFAULT_MAX_BYTES, **options.except(*UNIVERSAL))
      end

      # Adds to a raw value; a missing one becomes `amount`.
      def increment(name, amount = 1, options = nil)
        count(:increment, name, amount, amount, options)
      end

      # Subtracts from a raw value, stopping at zero; a missing one stays missing (nil), as with memcached.
      def decrement(name, amount = 1, options = nil)
        count(:decrement, name, -amount, nil, options)
      end

      def delete_matched(matcher, options = nil)
        options = merged_options(options)
        matcher = key_matcher(matcher, options)
        instrument(:delete_matched, matcher.inspect) do
          @store.each_key { |key| @store.delete?(key) if matcher.match?(key.scrub) }
        end
      end

      # Gives back the room of what expired.
      def cleanup(options = nil)
        instrument(:cleanup, nil) { @store.compact }
      end

      def clear(options = nil)
        instrument(:clear, nil) { @store.clear }
        true
      end

      def stats
        @store.stats
      end

      private

      def count(operation, name, by, initial, options)
        options = merged_options(options)
        key = normalize_key(name, options)
        instrument(operation, name, amount: by.abs) do
          loop do
            break @store.incr(key, by, initial: initial, ttl: options[:expires_in]&.to_f)
          rescue Hashmere::NotANumber => e
            record = @store.get_item(key)
            next if record.nil?

            done, number = count_entry(key, record, by)
            break number if done == :counted
            break not_counted(name, e) if done == :refused
          end
        end
      end

      # An entry that is no raw value: [:counted, number]; :again, if another writer changed it; :refused, if it is no number.
      def count_entry(key, record, by)
        return :refused unless record.flags == ENTRY

        entry = entry_of(record.value, record.flags)
        if entry.expired?
          @store.delete?(key, version: record.version)
          return :again
        end
        number = Integer(entry.value, exception: false) or return :refused
        number = [number + by, 0].max
        counted = Entry.new(number, version: entry.version)
        counted.expires_at = entry.expires_at
        value = serialize_entry(counted)
        stored = @store.cas(key, value, version: record.version, flags: ENTRY, expires_at: record.expires_at)
        stored ? [:counted, number] : :again
      end

      def not_counted(name, error)
        logger&.error("Hashmere (#{error.class.name}): #{name}: #{error.message}")
        nil
      end

      def read_entry(key, **_options)
        record = @store.get_item(key)
        record && entry_of(record.value, record.flags)
      end

      def entry_of(value, flags)
        return Entry.new(value, compress: false) unless flags == ENTRY

        deserialize_entry(value.force_encoding(Encoding::BINARY))
      end

      # False if the cache cannot take it now: a cache that fails is a cache that has nothing.
      def write_entry(key, entry, **options)
        write = options[:unless_exist] ? :add : :set
        value = options[:raw] ? entry.value.to_s : serialize_entry(entry)
        @store.public_send(write, key, value, ttl: lifetime(entry, options), flags: options[:raw] ? 0 : ENTRY) ? true : false
      rescue Hashmere::Full, Hashmere::NoSpace, Hashmere::AddressSpace, Hashmere::Busy, Hashmere::TooLarge => e
        logger&.error("Hashmere (#{e.class.name}): #{e.message}")
        forget(key) unless options[:unless_exist]
        false
      end

      # Removes a name whose new value could not be stored. (If its lock is held, another writer may be storing one.)
      def forget(key)
        @store.delete?(key)
      rescue Hashmere::Busy
        nil
      end

      def lifetime(entry, options)
        return unless entry.expires_at

        more = options[:race_condition_ttl] && !options[:raw] ? RACE_SECONDS : 0
        [entry.expires_at - Time.now.to_f + more, 0].max
      end

      def delete_entry(key, **_options)
        @store.delete?(key)
      end

      def delete_multi_entries(keys, **_options)
        @store.delete_many(keys)
      end
    end
  end
end
