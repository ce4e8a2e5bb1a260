# frozen_string_literal: true

module Hashmere
  # Iteration. Writers never wait for it, and the store may be changed during it, also by the block: a key that comes or
  # goes during the scan is seen or not.
  class Store
    # Key and value of every key.
    def each(prefix: nil, glob: nil, &block)
      return to_enum(:each, prefix: prefix, glob: glob) { size unless prefix || glob } unless block

      scan(prefix: prefix, glob: glob, &block)
      self
    end
    alias each_pair each

    # Every key, without reading the values.
    def each_key(prefix: nil, glob: nil)
      return to_enum(:each_key, prefix: prefix, glob: glob) { size unless prefix || glob } unless block_given?

      run(_scan(prefix, glob, 0, true)) { |key| yield key }
      self
    end

    def each_value
      return to_enum(:each_value) { size } unless block_given?

      scan { |pair| yield pair[1] }
      self
    end

    # Shows key and value of those keys that start with `prefix` and match `glob` (`*`, `?`, `[a-z]`, `[!a-z]`), from a cursor on
    # that an earlier scan of any process returned. With `limit` it stops after that many.
    # @return [Integer, nil] the cursor to go on from; nil: it came to the end
    def scan(prefix: nil, glob: nil, cursor: 0, limit: nil)
      raise ArgumentError, "limit has to be positive: #{limit}" if limit && limit < 1

      scan = _scan(prefix, glob, cursor, false)
      seen = 0
      run(scan) do |pair|
        yield pair
        return scan.cursor if limit && (seen += 1) == limit
      end
      nil
    end

    # Scans with several threads at once and then shows every pair, so it needs room for all of them. Other Ruby threads
    # run on during the scan.
    def parallel_scan(threads: 4, prefix: nil, glob: nil)
      return to_enum(:parallel_scan, threads: threads, prefix: prefix, glob: glob) unless block_given?

      _parallel_scan(threads, prefix, glob).each { |pair| yield pair }
      self
    end

    def keys(prefix: nil, glob: nil) = each_key(prefix: prefix, glob: glob).to_a
    def values = each_value.to_a
    def to_h(&block) = block ? super : each_with_object({}) { |(key, value), hash| hash[key] = value }

    # Removes the keys for which the block is true, as they were when it saw them.
    def delete_if
      each { |key, value| delete?(key, expected: value) if yield key, value }
    end

    private

    def run(scan)
      while (found = scan.next)
        yield found
      end
    ensure
      scan.close
    end
  end
end
