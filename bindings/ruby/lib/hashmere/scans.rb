# frozen_string_literal: true

module Hashmere
  # Iteration. Writers never wait for it, and the store may be changed during it, also by the block: a key that comes or
  # goes during the scan is seen or not.
  #
  # Calls that take a *filter* show the keys that pass all of it:
  # - `prefix:` those that start with it
  # - `glob:` those that match it: `*`, `?`, `[a-z]`, `[!a-z]`, `\\` before a character meant as it is
  # - `regex:` those in which it is found: a Regexp, or a String in the syntax of Rust's crate regex. There are no back-references and no
  #   look-around (`BadPattern`), and a key takes time linear in its length.
  # - `part:` `[0, 4]` is the first of four parts into which the hashes are divided evenly: several processes share a scan
  class Store
    # Key and value of every key.
    # @param filter see {Store}
    def each(**filter, &block)
      return to_enum(:each, **filter) { size if filter.empty? } unless block

      scan(**filter, &block)
      self
    end
    alias each_pair each

    # Every key, without reading the values.
    # @param filter see {Store}
    def each_key(**filter)
      return to_enum(:each_key, **filter) { size if filter.empty? } unless block_given?

      run(_scan(Filter.parts(**filter), 0, Filter::KEYS)) { |key| yield key }
      self
    end

    def each_value
      return to_enum(:each_value) { size } unless block_given?

      scan { |pair| yield pair[1] }
      self
    end

    # Shows key and value of the keys that pass the filter, from a cursor on that an earlier scan of any process or {#cursor_of} returned.
    # With `limit` it stops after that many.
    # @param filter see {Store}
    # @return [Integer, nil] the cursor to go on from; nil: it came to the end
    def scan(cursor: 0, limit: nil, **filter)
      raise ArgumentError, "limit has to be positive: #{limit}" if limit && limit < 1

      scan = _scan(Filter.parts(**filter), cursor, Filter::PAIRS)
      seen = 0
      run(scan) do |pair|
        yield pair
        return scan.cursor if limit && (seen += 1) == limit
      end
      nil
    end

    # Scans with several threads at once and then shows every pair, so it needs room for all of them. Other Ruby threads
    # run on during the scan.
    # @param filter see {Store}
    def parallel_scan(threads: 4, **filter)
      return to_enum(:parallel_scan, threads: threads, **filter) unless block_given?

      _parallel_scan(threads, Filter.parts(**filter)).each { |pair| yield pair }
      self
    end

    # Shows key and value of every key that passes the filter and does what the block returns, as {#update_with} does, each key atomically:
    # stores a String, leaves the key with nil, removes it with {REMOVE}. A key that exists all the while is visited exactly once, beside
    # writers and growth; the block is called again with a key that another writer changed during its call.
    # @param filter see {Store}
    # @return [Integer] how many keys were stored or removed
    def update_each(**filter)
      raise ArgumentError, "a block is needed" unless block_given?

      changed = 0
      run(_scan(Filter.parts(**filter), 0, Filter::KEYS_AND_UIDS)) do |key, uid|
        said = nil
        # By the entry: with its hash if it has one, and never created again.
        update_with(Uid.new(uid)) { |old| said = old && yield(key, old) }
        changed += 1 unless said.nil?
      rescue Stale
        next
      end
      changed
    end

    # Writes all records (key, value, flags and expiry) of the keys that pass the filter to a file, which appears when it is complete.
    # @param format [:tsv, :jsonl, nil] nil: by the name of the file
    # @param filter see {Store}
    # @return [Integer] how many there are
    def dump(path, format: nil, **filter)
      _dump_to(Hashmere._name(path), Filter.format(format), Filter.parts(**filter))
    end

    # Stores all records of a file, in order. `Malformed` names a line that is none, and how many before it are stored.
    # @param format [:tsv, :jsonl, nil] nil: by the name of the file
    # @return [Integer] how many there are
    def load(path, format: nil)
      _load_from(Hashmere._name(path), Filter.format(format))
    end

    # @param filter see {Store}
    def keys(**filter)
      each_key(**filter).to_a
    end

    def values
      each_value.to_a
    end

    def to_h(&block)
      block ? super : each_with_object({}) { |(key, value), hash| hash[key] = value }
    end

    # Removes the keys for which the block is true, as they were when it saw them.
    def delete_if(&block)
      return to_enum(:delete_if) unless block

      delete_where(&block)
      self
    end

    private

    # Removes the keys for which the block is true, and returns how many it were.
    def delete_where
      each.count { |key, value| yield(key, value) && delete?(key, expected: value) }
    end

    def run(scan)
      while (found = scan.next)
        yield found
      end
    ensure
      scan.close
    end
  end
end
