# frozen_string_literal: true

module Hashmere
  # What a number that names an entry can do: {Uid} and {EntryId}. They are equal if they are of one kind and have one number.
  module NumberOfEntry
    # @return [Integer]
    def to_i
      @number
    end

    def ==(other)
      other.instance_of?(self.class) && other.to_i == @number
    end

    alias eql? ==

    def hash
      [self.class, @number].hash
    end

    def inspect
      "#<#{self.class} #{@number}>"
    end

    private

    def initialize(number)
      @number = self.class.send(:_check, number)
      freeze
    end
  end

  # The number of a key as long as it exists: a key for every call that takes one. When the key is gone, its number may come to mean
  # another one, unnoticed; {EntryId} notices. {Store#uid_of} and items give them; `Uid.new(number)` makes one of a stored number.
  class Uid
    include NumberOfEntry

    private_class_method :_check
  end

  # As {Uid}, but noticed when it has come to mean another key: reads find nothing, and a write raises {Stale}. {Store#id_of} gives them.
  class EntryId
    include NumberOfEntry

    private_class_method :_check
  end

  # A key with a 64-bit hash that the caller has already. It is found with the same hash only; the same bytes without one, or with another,
  # are another key.
  class HashedKey
    # @return [String]
    attr_reader :key

    # @param key [String, Symbol]
    # @param hash [Integer] below 2**64
    def initialize(key, hash)
      string = key.is_a?(Symbol) ? key.name : String.try_convert(key)
      raise TypeError, "the bytes of a key have to be a String or a Symbol, not #{key.class}" unless string

      @key = string.frozen? ? string : string.dup.freeze
      @number = self.class.send(:_check, hash)
      freeze
    end

    # @return [Integer] the hash that was given
    def key_hash
      @number
    end

    def ==(other)
      other.instance_of?(HashedKey) && other.key_hash == @number && other.key == @key
    end

    alias eql? ==

    def hash
      [HashedKey, @key, @number].hash
    end

    def inspect
      "#<Hashmere::HashedKey #{@key.inspect} #{@number}>"
    end

    private_class_method :_check
  end
end
