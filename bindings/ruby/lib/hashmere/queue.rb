# frozen_string_literal: true

module Hashmere
  # A fixed number of elements of a fixed size in a store's file, and named queues between which they move by reference, also from process to
  # process. What a process held when it died goes back where it came from. After a fork open it again in the child.
  #
  #   pool = Hashmere::Pool.open(store, "jobs", elements: 1000, bytes: 4096)
  #   todo = pool.queue("todo")
  #   endpoint = pool.endpoint                                  # one for each thread
  #   job = endpoint.pop(pool.free) and job.write(0, "hello").push(todo)
  #   job = endpoint.pop(todo, timeout: 1) and job.push(pool.free)
  class Pool
    # @private
    KINDS = { nil => 0, mpmc: 1, mpsc: 2, spsc: 3 }.freeze
    private_constant :KINDS

    # Opens a pool, and creates it if `elements` and `bytes` are given and it is missing.
    # @param max_queues [Integer] how many it can have, `free` included
    # @param max_endpoints [Integer] how many endpoints at a time, of all processes
    # @param batch [Integer] how many elements the batch of an endpoint can have
    # @param on_death [String, nil] the queue for elements of crashed processes; nil: each goes back where it was popped from
    def self.open(store, name, elements: nil, bytes: nil, max_queues: 0, max_endpoints: 0, batch: 0, on_death: nil)
      raise ArgumentError, "give elements and bytes, or none of them" if elements.nil? != bytes.nil?

      _open(store, name, elements && [elements, bytes, max_queues, max_endpoints, batch], on_death)
    end

    # Takes a pool's name off it. @return [Boolean] whether there was one
    def self.remove(store, name)
      _remove(store, name)
    end

    # The queue in which all elements are at first.
    def free
      @free ||= queue("free")
    end

    # A queue of this name; made if it is missing.
    # @param kind [:mpmc, :mpsc, :spsc, nil] how many push to it and pop from it; nil: as it is, :mpmc if it is made
    # @param bound [Integer, nil] the most elements that it takes
    def queue(name, kind: nil, bound: nil)
      _queue(name, KINDS.fetch(kind) { raise ArgumentError, "kind has to be :mpmc, :mpsc or :spsc, not #{kind.inspect}" }, bound || 0)
    end

    private_class_method :_open, :_remove
  end

  # A queue of a pool; any number of threads may use it.
  #
  # `IO.select` and event loops take it as it is, by {#to_io}:
  #
  #   IO.select([todo, socket])
  #   while (job = endpoint.pop(todo))
  #     job.push(done)
  #   end
  class Queue
    def empty?
      size.zero?
    end
  end

  # What one thread takes part with. It holds up to 64 elements that were popped one by one, or a {Batch}; those that are not pushed stay with
  # it until it is closed.
  class Endpoint
    # Takes the first element of a queue, and waits for one as many seconds as `timeout` says (nil: forever).
    # @return [Element, nil] nil: none came
    def pop(from, timeout: 0)
      _pop(from, Attributes.timeout_ms(timeout))
    end

    # Takes up to `max` elements in one operation, behind those of the {#batch}. With a timeout it waits for the first, if the batch is empty.
    # @return [Integer] how many it were
    def pop_many(from, max, timeout: 0)
      _pop_many(from, max, Attributes.timeout_ms(timeout))
    end

    # Pushes the first `max` elements of the {#batch} (nil: all of them) in one operation, in their order.
    # @return [Integer] how many it were; fewer than there are: the queue has reached its bound
    def push_many(to, max = nil)
      _push_many(to, max || Attributes::FOREVER)
    end

    # What was popped by {#pop_many} and not yet pushed. An endpoint holds either such elements or ones that were popped alone (`InvalidState`).
    # @return [Batch]
    def batch
      @batch ||= Batch.new(self)
    end
  end

  # The elements that an endpoint popped together, by their place in it: {Endpoint#batch}. It is as long as what the endpoint holds at the time.
  class Batch
    include Enumerable

    # @private
    def initialize(endpoint)
      @endpoint = endpoint
    end

    # How many there are.
    def size
      @endpoint.send(:_batch_size)
    end

    alias length size

    def empty?
      size.zero?
    end

    # A copy of the bytes of an element, or of some of them.
    def read(index, start = 0, count = nil)
      @endpoint.send(:_batch_read, index, start, count)
    end

    # @return [self]
    def write(index, start, bytes)
      @endpoint.send(:_batch_write, index, start, bytes)
      self
    end

    # Copies of the elements, in their order.
    def each
      return to_enum(:each) { size } unless block_given?

      size.times { |index| yield read(index) }
      self
    end
  end

  # An element that an endpoint holds, until it is pushed.
  class Element

    # A copy of its bytes, or of some of them.
    def read(start = 0, count = size - start)
      _read(start, count)
    end

    alias to_s read
  end
end
