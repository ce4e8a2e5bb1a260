# frozen_string_literal: true

module Hashmere
  # What a Hash has besides, and the names of Dalli. What returns a Hash reads all keys into this process.
  class Store
    # The value of a key, as of a Hash. A String has nothing to dig in: TypeError with more than a key; {Coded#dig} goes on.
    def dig(key, *rest)
      value = self[key]
      rest.empty? || value.nil? ? value : raise(TypeError, "String does not have #dig method: use a coded store")
    end

    # The values of several keys; KeyError, or what the block returns, for one that is absent.
    def fetch_values(*keys, &block)
      keys.zip(values_at(*keys)).map { |key, value| value.nil? ? fetch(key, &block) : value }
    end

    # Whether some key has this value.
    def value?(value)
      each { |_, found| return true if found == value }
      false
    end
    alias has_value? value?

    # A key that has this value; nil: there is none.
    def key(value)
      each { |key, found| return key if found == value }
      nil
    end

    # Removes a random pair and returns it; exactly one of several callers gets it. @return [Array(String, String), nil] nil: the store is empty
    def shift
      while (key, parts = _random_item)
        # By its UID, for it may have been stored with a hash.
        return [key, parts[0]] if delete?(Uid.new(parts[2]), version: parts[1])
      end
    end

    # Removes the keys for which the block is false, as they were when it saw them. @return [self, nil] nil: there was none
    def select!
      return to_enum(:select!) unless block_given?

      self unless delete_where { |key, value| !yield(key, value) }.zero?
    end
    alias filter! select!

    # Removes the keys for which the block is true, as they were when it saw them. @return [self, nil] nil: there was none
    def reject!(&block)
      return to_enum(:reject!) unless block

      self unless delete_where(&block).zero?
    end

    # Removes the keys for which the block is false, as they were when it saw them.
    def keep_if
      return to_enum(:keep_if) unless block_given?

      delete_where { |key, value| !yield(key, value) }
      self
    end

    # All pairs but those of some keys. @return [Hash]
    def except(*keys)
      to_h.except(*keys.map { |key| key.is_a?(Symbol) ? key.name : key })
    end

    # All pairs and those of Hashes, which win; a block decides between two values. @return [Hash]
    def merge(*hashes, &block)
      to_h.merge(*hashes.map { |hash| hash.to_h.transform_keys { |key| Hashmere._text(key) } }, &block)
    end

    # All pairs with the values that the block makes of them. @return [Hash]
    def transform_values(&block)
      block ? to_h.transform_values(&block) : to_enum(:transform_values)
    end

    # Replaces every value by what the block makes of it, each key atomically: see {#update_each}.
    def transform_values!
      return to_enum(:transform_values!) unless block_given?

      update_each { |_, value| yield value }
      self
    end

    # Dalli's name of {#slice}: key and value of those that are there. With a block it is shown each pair.
    def get_multi(*keys, &block)
      found = slice(*keys.flatten)
      return found unless block

      found.each(&block)
      nil
    end

    # Dalli's name of {#get_and_touch}: gives a key another time to live (nil: none) and returns its value.
    def gat(key, ttl = nil)
      get_and_touch(key, ttl: ttl)&.value
    end
  end
end
