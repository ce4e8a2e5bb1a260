# frozen_string_literal: true

# Methods that the extension (ext/hashmere) defines, for the reference: nothing is loaded from here.
module Hashmere
  class Store
    # @!method [](key)
    #   The value of a key, a new String in the encoding of the store. @return [String, nil]
    # @!method []=(key, value)
    #   Stores a value without attributes. @return [String] the value
    # @!method key?(key)
    #   @return [Boolean] whether the key is there
    # @!method up_to_date?(key, version)
    #   @return [Boolean] whether the key is still there with this version; by {Uid} or {EntryId} the key is not looked up
    # @!method append(key, tail)
    #   Puts bytes behind a value; flags and expiry stay. @return [Integer, nil] its version; nil: the key is absent
    # @!method prepend(key, head)
    #   Puts bytes before a value; flags and expiry stay. @return [Integer, nil] its version; nil: the key is absent
    # @!method inc_ref(key, by = 1)
    #   Takes references of a key, which is created with the first. @return [Integer] how many there are now
    # @!method dec_ref(key, by = 1)
    #   Gives references back; with the last one the key goes. @return [Integer, nil] how many are left; nil: the key is absent
    # @!method uid_of(key)
    #   The number of a key as long as it exists: as a key of other calls it is found faster. @return [Uid, nil]
    # @!method id_of(key)
    #   The same, but noticed when it has come to mean another key. @return [EntryId, nil]
    # @!method key_of(key)
    #   The key that a {Uid} or {EntryId} names. @return [String, nil]
    # @!method random
    #   Key and value, each with nearly the same chance. @return [Array(String, String), nil] nil: the store is empty
    # @!method size
    #   How many keys there are; expired ones count until they are cleaned away. @return [Integer]
    # @!method clear
    #   Removes every key. No process is stopped. @return [self]
    # @!method sync
    #   Durable stores: returns when everything acknowledged before survives a power cut. @return [self]
    # @!method compact
    #   Repairs what crashed processes left and compacts where it pays. @return [Integer] how many bytes became free
    # @!method stats
    #   Statistics, in bytes unless said otherwise: docs/operations.md.
    #   @return [Hash{Symbol => Integer}]
    # @!method clients
    #   The writing threads of all processes. @return [Array<Hash>]
    # @!method check
    #   Reads the whole store and names what contradicts itself. @return [Array<String>] empty if all is well
    # @!method path
    #   The file. @return [String]
    # @!method read_only?
    #   @return [Boolean]
    # @!method close
    #   Closes the store; views and scans of it stay good. @return [nil]
    # @!method closed?
    #   @return [Boolean]
  end
end
