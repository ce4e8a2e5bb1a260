# frozen_string_literal: true

# Methods that are not written in Ruby (ext/hashmere) or are made in loops, for the reference: this file is never loaded.
module Hashmere
  class Store
    # The value of a key, a new String in the encoding of the store. @return [String, nil]
    def [](key); end

    # Stores a value without attributes. @return [String] the value
    def []=(key, value); end

    # Where a scan begins with this key: it is the first that {#scan} shows from there, if it passes the filter. @return [Integer, nil] nil:
    # the key is absent
    def cursor_of(key); end

    # How many keys a scan returns now: those that have expired do not count. It looks at every key. @return [Integer]
    def len_exact; end

    # @return [Boolean] whether the key is there
    def key?(key); end

    # @return [Boolean] whether the key is still there with this version; by {EntryId} or {Uid} nothing is hashed or looked for
    def up_to_date?(key, version); end

    # Puts bytes behind a value; flags and expiry stay. @return [Integer, nil] its version; nil: the key is absent
    def append(key, tail); end

    # Puts bytes before a value; flags and expiry stay. @return [Integer, nil] its version; nil: the key is absent
    def prepend(key, head); end

    # Takes references of a key, which is created with the first. @return [Integer] how many there are now
    def inc_ref(key, by = 1); end

    # Gives references back; with the last one the key goes. @return [Integer, nil] how many are left; nil: the key is absent
    def dec_ref(key, by = 1); end

    # The number of a key as long as it exists: as a key of other calls it is found faster. @return [Uid, nil]
    def uid_of(key); end

    # The same, but noticed when it has come to mean another key. @return [EntryId, nil]
    def id_of(key); end

    # The key that a {Uid} or {EntryId} names. @return [String, nil]
    def key_of(key); end

    # Key and value, each with nearly the same chance. @return [Array(String, String), nil] nil: the store is empty
    def random; end

    # How many keys there are; expired ones count until they are cleaned away. @return [Integer]
    def size; end

    # Removes every key. No process is stopped. @return [self]
    def clear; end

    # Durable stores: returns when everything acknowledged before survives a power cut. @return [self]
    def sync; end

    # Repairs what crashed processes left and compacts where it pays. @return [Integer] how many bytes became free
    def compact; end

    # Statistics, in bytes unless said otherwise: docs/operations.md.
    # @return [Hash{Symbol => Integer}]
    def stats; end

    # The writing threads of all processes. @return [Array<Hash>]
    def clients; end

    # Reads the whole store and names what contradicts itself. @return [Array<String>] empty if all is well
    def check; end

    # The file. @return [String]
    def path; end

    # @return [Boolean]
    def read_only?; end

    # Closes the store; views and scans of it stay good. @return [nil]
    def close; end

    # @return [Boolean]
    def closed?; end

    # Who holds the readers-writer lock of a key for writing at about this moment. @return [Integer, nil] a process id; nil: none, or one
    # that is gone, or whose name went when the store was cleared or the key deleted
    def rwlock_writer(key); end

    # Who holds it for reading. @return [Array<Integer>] process ids, each as often as it does
    def rwlock_readers(key); end

    # Who holds permits of the semaphore of a key at about this moment. @return [Array<Integer>] process ids, each as often as it has one
    def semaphore_holders(key); end

    # Who holds the mutex of a key at about this moment. @return [Integer, nil] a process id; nil: none, or one that is gone; 0: one
    # whose name went when the store was cleared or the key deleted (no process to send a signal to)
    def mutex_holder(key); end

    # Who computes the value of a key by {#once} at about this moment. @return [Integer, nil] as {#mutex_holder}
    def once_holder(key); end
  end

  # A running scan: {Store#scan} and its kin make them and close them.
  class Scan
    # The next key, or key and value. @return [Array(String, String), String, nil] nil: the end
    def next; end

    # Where to go on at any later time. @return [Integer, nil] nil: the end
    def cursor; end

    # Ends it. @return [nil]
    def close; end
  end

  class View
    # Whether the key still has this value: mostly one load, and never a look-up. A touch is no change.
    # @return [Boolean] false: it was changed or removed, or has expired
    def up_to_date?; end

    # Lets go of the bytes, whose room is free then. @return [nil]
    def release; end

    # @return [Integer] how many bytes there are
    def bytesize; end

    # @return [Integer] how many bytes there are
    def size; end

    # @return [Integer] how many bytes there are
    def length; end

    # The byte at a place, from the end if it is negative. @return [Integer, nil] nil: there is none
    def getbyte(at); end

    # A copy of a part. @return [String, nil] nil: it begins behind the end
    def byteslice(start, count); end

    # @return [Boolean] false: the bytes are a copy, as those of a short value are
    def zero_copy?; end
  end

  class Reservation
    # @return [Integer] how many bytes there are
    def bytesize; end

    # @return [Integer] how many bytes there are
    def size; end

    # @return [Integer] how many bytes there are
    def length; end

    # Sets the byte at a place. @return [Integer] the byte
    def setbyte(at, byte); end

    # Sets the byte at a place. @return [Integer] the byte
    def []=(at, byte); end

    # Copies bytes to a place. @return [self]
    def write(start, bytes); end
  end

  class Error
    # @return [Integer] the stable number, the same in every language
    def code; end

    # @return [Integer, nil] the number of the system's error, where there is one
    def os_error; end

    # @return [Integer, nil] the process that is in the way, where there is one
    def pid; end
  end

  class Feed
    # Where it is: a consumer that starts with this goes on behind the event that was returned last; within a transaction, at its beginning.
    # @return [String]
    def token; end

    # How far behind the newest change it is, in positions: each change is one, and so is each transaction. @return [Integer]
    def lag; end

    # Ends following. @return [nil]
    def close; end

    # @return [Boolean]
    def closed?; end
  end

  class Uid
    # @param number [Integer] below 2**32
    def initialize(number); end
  end

  class EntryId
    # @param number [Integer] below 2**64
    def initialize(number); end
  end

  class Log
    # Logs a line: {#log}. The block, if there is one, makes the message, if the level is wanted.
    def error(message = nil, **fields); end

    # See {#error}.
    def warn(message = nil, **fields); end

    # See {#error}.
    def info(message = nil, **fields); end

    # See {#error}.
    def debug(message = nil, **fields); end

    # See {#error}.
    def trace(message = nil, **fields); end

    # @return [Boolean] whether such lines are wanted
    def error?; end

    # @return [Boolean] whether such lines are wanted
    def warn?; end

    # @return [Boolean] whether such lines are wanted
    def info?; end

    # @return [Boolean] whether such lines are wanted
    def debug?; end

    # @return [Boolean] whether such lines are wanted
    def trace?; end

    # Who has a ring of this log, or had it last, at about this moment: `ring` (a number), `owned`, `process`, `pid`, `thread`, the `bytes_waiting` in it to be
    # drained, and how many lines were dropped there last of which nothing has told yet (`unreported_drops`). @return [Array<Hash>]
    def rings; end

    # @return [Hash{Symbol => Integer}]
    def stats; end

    # Lets go of it; what is in it stays. Drainers of it go on. @return [nil]
    def close; end

    # @return [Boolean]
    def closed?; end
  end

  class Log
    class Drainer
      # @return [Boolean] whether it drains: not yet, if another one does, and not any more, if it was stopped or failed
      def active?; end
    end
  end

  class Log
    class ManualDrainer
      # Writes out what is in the rings. What is too young by some millionths of a second stays for the next call. @return [Integer] how many lines it took
      def poll; end

      # Writes out the rest and gives the role back. @return [Integer] how many lines that were
      def finish; end

      # @return [Boolean]
      def finished?; end
    end
  end

  class Log
    class Follower
      # @return [Integer] bytes of lines that were written over before they were read
      def missed_bytes; end

      # @return [nil]
      def close; end
    end
  end

  class Logger
    # Logs a line of this severity; the block, if there is one, makes the message. Fields without a message are the message.
    def debug(message = nil, **fields); end

    # See {#debug}.
    def info(message = nil, **fields); end

    # See {#debug}.
    def warn(message = nil, **fields); end

    # See {#debug}.
    def error(message = nil, **fields); end

    # See {#debug}.
    def fatal(message = nil, **fields); end

    # See {#debug}.
    def unknown(message = nil, **fields); end
  end

  class Pool
    # Takes part: see {Endpoint}.
    def endpoint; end

    # Gives back what crashed processes held. Pops from empty queues and waits do this by themselves. @return [Integer] how many elements
    def recover; end

    # @return [Hash{Symbol => Integer}]
    def stats; end

    # @return [nil]
    def close; end
  end

  class Queue
    # @return [Integer] elements in it at about this moment
    def size; end

    # A copy of the first element, which stays where it is. @return [String, nil] nil: it is empty
    def peek; end

    # An IO that is readable when there may be something to pop, and no more once a pop *from this object* found nothing. It is
    # made with the first call; a thread of the library sleeps on the queue from then on. Do not read from it. Other processes may be
    # faster, so pop without a timeout. It goes with {#close}. @return [IO]
    def to_io; end

    # Lets go of it; what is in it stays. @return [nil]
    def close; end
  end

  class Endpoint
    # Pushes the whole {#batch}, as far as the queue takes it, then takes up to `max` elements from another.
    # @return [Array(Integer, Integer)] how many of each
    def push_pop_many(to, from, max); end

    # Moves to another queue what is in one now. @return [Integer] how much
    def drain(from, to); end

    # Gives back all that it holds. @return [nil]
    def close; end
  end

  class Element
    # Puts it at the end of a queue. @return [Boolean] false: that has reached its bound, and the endpoint still holds it
    def push(queue); end

    # Puts it at the end of one queue and takes the first element of another: the step of a stage that passes on what it was given.
    # @return [Element, nil, false] nil: there was none; false: `to` has reached its bound, the endpoint still holds this one, and nothing was
    #   taken
    def push_pop(to, from); end

    # Puts it back where it came from. @return [nil]
    def give_back; end

    # @return [self]
    def write(start, bytes); end

    # @return [Integer] its bytes
    def size; end

    # @return [Integer] its index in the pool, from 0
    def index; end
  end

  class Transaction
    # The value of a key. @return [String, nil]
    def [](key); end

    # @return [Boolean] whether the key is there
    def key?(key); end

    # Removes a key, if it is there. @return [self]
    def delete(key); end

    # Puts bytes behind a value. @return [Boolean] false: the key is absent
    def append(key, tail); end

    # Puts bytes in front of a value. @return [Boolean] false: the key is absent
    def prepend(key, head); end
  end

  class Barrier
    # The others go on without. @return [nil]
    def leave; end
  end

  class Atomics
    # Opens a set, and creates it if it is missing. @return [Atomics]
    def self.open(store, name); end

    # Takes a set's name off it. @return [Boolean] whether there was one
    def self.remove(store, name); end

    # The atomic of this name, of 1 to 56 bytes; made if it is missing, and kept until the set is removed. @return [Atomic]
    def atomic(name); end
  end

  class Atomic
    # @return [Integer] the value, from 0 to 2**64 - 1
    def load; end

    # Stores a value. @return [nil]
    def store(value); end

    # Stores a value. @return [Integer] the value before
    def swap(value); end

    # Adds, modulo 2**64, a negative number too. @return [Integer] the value before
    def fetch_add(by = 1); end

    # Clears the bits that are not set in `value`. @return [Integer] the value before
    def fetch_and(value); end

    # Sets the bits of `value`. @return [Integer] the value before
    def fetch_or(value); end

    # Flips the bits of `value`. @return [Integer] the value before
    def fetch_xor(value); end

    # Stores `value` if the value is `current`. @return [Integer] the value before, which says whether it was
    def compare_exchange(current, value); end
  end
end
