# frozen_string_literal: true

require_relative "helper"
require "io/wait"
require "timeout"

# Queues between processes, and waiting for each other.
class TestQueues < StoreTest
  def pool = Hashmere::Pool.open(@store, "jobs", elements: 16, bytes: 32)

  def test_elements
    assert_raises(Hashmere::QueueNotFound) { Hashmere::Pool.open(@store, "jobs") }
    pool = self.pool
    todo = pool.queue("todo")
    endpoint = pool.endpoint
    assert_nil endpoint.pop(todo)
    job = endpoint.pop(pool.free)
    assert_equal [0, 32], [job.index, job.size]
    assert job.write(0, "hello").push(todo)
    assert_raises(Hashmere::Closed) { job.push(todo) }
    assert_equal [15, 1], [pool.free.size, todo.size]
    job = endpoint.pop(todo, timeout: 5)
    assert_equal "hello", job.read(0, 5)
    assert_raises(IndexError) { job.read(30, 3) }
    assert_raises(IndexError) { job.write(30, "abc") }
    job.give_back
    assert_equal 1, todo.size
    bounded = pool.queue("bounded", kind: :mpsc, bound: 1)
    assert_raises(Hashmere::QueueExists) { pool.queue("todo", kind: :spsc) }
    assert_raises(ArgumentError) { pool.queue("x", kind: :other) }
    first, second = endpoint.pop(pool.free), endpoint.pop(pool.free)
    assert first.push(bounded)
    refute second.push(bounded)
    assert_equal 1, pool.stats[:held]
    assert_raises(TypeError) { endpoint.pop(pool) }
    assert_raises(TypeError) { Hashmere::Pool.open(7, "x") }
    endpoint.close
    assert_raises(Hashmere::Closed) { second.push(bounded) }
    assert_equal 0, pool.stats[:held]
    assert Hashmere::Pool.remove(@store, "jobs")
  end

  def test_batches
    pool = self.pool
    todo, endpoint = pool.queue("todo"), pool.endpoint
    assert_equal 3, endpoint.pop_many(pool.free, 3)
    assert_equal [3, 3], [endpoint.batch.size, endpoint.batch.to_a.size]
    3.times { |n| endpoint.batch.write(n, 1, "element #{n}") }
    assert_equal "element 2", endpoint.batch.read(2, 1, 9)
    assert_equal 32, endpoint.batch.read(0).bytesize
    assert_raises(IndexError) { endpoint.batch.read(3) }
    assert_raises(IndexError) { endpoint.batch.read(0, 33) }
    assert_raises(IndexError) { endpoint.batch.write(0, 30, "abc") }
    assert_raises(RangeError) { endpoint.batch.read(-1) }
    assert_equal [1, 2], [endpoint.push_many(todo, 1), endpoint.push_many(todo)]
    assert_predicate endpoint.batch, :empty?
    assert_equal "element 0", todo.peek[1, 9]
    assert_nil pool.queue("empty").peek
    assert_equal [0, 3], endpoint.push_pop_many(pool.free, todo, 10)
    assert_equal [3, 0], endpoint.push_pop_many(todo, todo, 0)
    alone = endpoint.pop(todo)
    assert_raises(Hashmere::InvalidState) { endpoint.pop_many(todo, 1) }
    alone.give_back
    assert_equal [3, 3], [endpoint.drain(todo, pool.free), endpoint.drain(pool.free, todo) - 13]
    assert_equal [0, 16], [endpoint.pop_many(pool.free, 1, timeout: 0.01), endpoint.pop_many(todo, 99)]
    bounded = pool.queue("bounded", bound: 5)
    assert_equal [5, 0, 11], [endpoint.push_many(bounded), endpoint.push_many(bounded), endpoint.batch.size]
    assert_equal 0, endpoint.pop_many(todo, 1, timeout: 60) # with a batch it does not wait
    endpoint.close
    assert_raises(Hashmere::Closed) { endpoint.batch.size }
    assert_equal [11, 5], [todo.size, bounded.size]
  end

  def test_passing_on
    pool = self.pool
    todo, bounded, endpoint = pool.queue("todo"), pool.queue("bounded", bound: 1), pool.endpoint
    2.times { |n| endpoint.pop(pool.free).write(0, n.to_s).push(todo) }
    first = endpoint.pop(todo)
    second = first.push_pop(bounded, todo)
    assert_equal "1", second.read(0, 1)
    assert_raises(Hashmere::Closed) { first.read }
    assert_equal false, second.push_pop(bounded, todo)
    assert_equal "1", second.read(0, 1)
    assert_nil second.push_pop(pool.free, todo)
    assert_raises(Hashmere::Closed) { second.read }
  end

  def test_a_batch_that_is_waited_for
    pool = self.pool
    todo = pool.queue("todo")
    thread = Thread.new { pool.endpoint.pop_many(todo, 5, timeout: nil) }
    Thread.pass until thread.stop?
    endpoint = pool.endpoint
    endpoint.pop_many(pool.free, 2)
    endpoint.push_many(todo)
    assert_equal 2, thread.value
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { endpoint.pop_many(todo, 5, timeout: nil) } }
  end

  # Whether an empty queue is not readable any more. The event may come once more, from a look before the last pop.
  def falls_silent?(queue, endpoint)
    5.times.any? { endpoint.pop(queue).nil? && IO.select([queue], nil, nil, 0.02).nil? }
  end

  # In an event loop: no element is overlooked, and no thread is woken for nothing again and again.
  def test_io_select
    pool = self.pool
    todo, endpoint = pool.queue("todo"), pool.endpoint
    assert_nil IO.select([todo], nil, nil, 0.01)
    child = fork do
      mine = self.pool
      to, by = mine.queue("todo"), mine.endpoint
      1000.times { by.pop(mine.free, timeout: 120).push(to) }
    end
    seen = 0
    while seen < 1000
      ready, = IO.select([todo], nil, nil, 120)
      assert_equal [todo], ready
      while (job = endpoint.pop(todo))
        seen += 1
        job.push(pool.free)
      end
    end
    Process.wait(child)
    assert_predicate $?, :success?
    assert falls_silent?(todo, endpoint)
    io = todo.to_io
    assert_same io, todo.to_io
    endpoint.pop_many(pool.free, 2)
    endpoint.push_many(todo)
    assert io.wait_readable(120)
    assert_equal 2, endpoint.drain(todo, pool.free)
    assert falls_silent?(todo, endpoint)
    todo.close
    assert_predicate io, :closed?
    assert_raises(Hashmere::Closed) { todo.to_io }
  end

  def test_a_queue_closed_by_another_thread
    pool = self.pool
    todo, endpoint = pool.queue("todo"), pool.endpoint
    thread = Thread.new { endpoint.pop(todo, timeout: 0.1) }
    Thread.pass until thread.stop?
    todo.close
    assert_nil thread.value
    assert_raises(Hashmere::Closed) { endpoint.pop(todo) }
  end

  def test_under_gc_stress
    pool = self.pool
    todo, endpoint = pool.queue("todo"), pool.endpoint
    @store["key"] = "1"
    GC.stress = true
    endpoint.pop(pool.free).write(0, "x".dup * 3).push_pop(todo, todo).give_back
    endpoint.pop_many(todo, 1)
    endpoint.batch.write(0, 0, "y".dup * 3)
    endpoint.batch.each { |bytes| bytes << "z" }
    endpoint.push_many(todo)
    assert IO.select([todo], nil, nil, 120)
    assert_equal 32, todo.peek.bytesize
    assert_equal "key", @store.wait_any({ "none" => nil, "key" => nil }, timeout: 1)[0]
    endpoint.drain(todo, pool.free)
    todo.close
  ensure
    GC.stress = false
  end

  # Work for processes, one of which is killed with an element in its endpoint.
  def test_work_with_a_killed_worker
    pool = self.pool
    todo, done = pool.queue("todo"), pool.queue("done")
    workers = Array.new(3) do |n|
      fork do
        mine = self.pool
        from, to, endpoint = mine.queue("todo"), mine.queue("done"), mine.endpoint
        while (job = endpoint.pop(from, timeout: 120))
          sleep if n.zero? # holds it until it is killed
          number = Integer(job.read(0, 4), 10)
          job.write(0, format("%04d%08d", number, number * number)).push(to)
        end
      end
    end
    endpoint = pool.endpoint
    100.times.each_slice(10) do |numbers|
      numbers.each { |number| endpoint.pop(pool.free, timeout: 120).write(0, format("%04d", number)).push(todo) }
      sleep 0.02 until workers.size < 3 || pool.stats[:held].positive? || todo.empty?
      Process.kill(:KILL, workers.first) && Process.wait(workers.shift) if workers.size == 3
      numbers.each do
        job = endpoint.pop(done, timeout: 120)
        (@results ||= []) << job.read(0, 12)
        job.push(pool.free)
      end
    end
    assert_equal (0...100).map { |n| format("%04d%08d", n, n * n) }, @results.sort
  ensure
    workers.each { |worker| Process.kill(:KILL, worker) && Process.wait(worker) }
  end

  def test_what_was_opened_before_a_fork_is_refused
    pool = self.pool
    endpoint = pool.endpoint
    in_child do
      endpoint.pop(pool.free)
      false
    rescue Hashmere::QueueForked
      true
    end
    assert endpoint.pop(pool.free)
  end

  def test_a_wait_hears_threads_and_timeouts
    pool = self.pool
    endpoint = pool.endpoint
    todo = pool.queue("todo")
    assert_raises(Timeout::Error) { Timeout.timeout(0.1) { endpoint.pop(todo, timeout: 60) } }
    thread = Thread.new { endpoint.pop(todo, timeout: 300).read(0, 1) }
    Thread.pass until thread.stop?
    assert_raises(ThreadError) { endpoint.pop(todo) }
    other = pool.endpoint
    other.pop(pool.free).write(0, "x").push(todo)
    assert_equal "x", thread.value
  end

  def test_waiting_for_a_key
    assert_nil @store.wait("a", nil, timeout: 0.01)
    child = fork { sleep 0.05 and @store["a"] = "1" }
    version = @store.wait("a", nil, timeout: 120)
    assert_equal @store.version("a"), version
    Process.wait(child)
    assert_equal version, @store.wait("a", 0, timeout: 0)
    @store.delete("a")
    assert_equal :removed, @store.wait("a", version, timeout: 1)
  end

  def test_waiting_for_one_of_several_keys
    seen = { "a" => nil, :b => nil }
    assert_nil @store.wait_any(seen, timeout: 0.01)
    child = fork { sleep 0.05 and @store["b"] = "1" }
    changed = @store.wait_any(seen, timeout: nil)
    Process.wait(child)
    assert_equal [:b, @store.version("b")], changed
    @store.delete("b")
    assert_equal [:b, :removed], @store.wait_any({ "a" => nil, :b => changed[1] }, timeout: 1)
    assert_raises(Hashmere::InvalidState) { @store.wait_any({}, timeout: 0) }
    assert_raises(TypeError) { @store.wait_any({ 7 => nil }, timeout: 0) }
    assert_raises(TypeError) { @store.wait_any({ "a" => "1" }, timeout: 0) }
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { @store.wait_any({ "a" => nil }, timeout: nil) } }
  end

  def test_mutex_once_and_barrier
    assert_equal(7, @store.lock("m") do |abandoned|
      refute abandoned
      error = Thread.new { assert_raises(Hashmere::Busy) { @store.lock("m", timeout: 0.01) { flunk } } }.value
      assert_equal Process.pid, error.pid
      assert_equal Process.pid, @store.mutex_holder("m")
      assert_match(/the mutex "m" was held by process #{Process.pid} for 0.01 s/, error.message)
      7
    end)
    refute @store.key?("m")
    @store.lock("m") do
      assert_match(/the mutex "m" was locked by this thread/, assert_raises(Hashmere::QueueReentered) { @store.lock("m", timeout: nil) { flunk } }.message)
      @store.clear
      error = Thread.new { assert_raises(Hashmere::Busy) { @store.lock("m", timeout: 0.01) { flunk } } }.value
      assert_match(/was held by process #{Process.pid} for/, error.message)
      assert_equal Process.pid, @store.mutex_holder("m")
      Hashmere.open(@store.path) { |other| assert_equal 0, other.mutex_holder("m") }
    end
    assert_equal 7, Thread.new { @store.lock("m", timeout: 0) { 7 } }.value
    child = fork { @store.lock("m") { Process.kill(:KILL, Process.pid) } }
    Process.wait(child)
    @store.lock("m") { |abandoned| assert abandoned }
    children = Array.new(4) { fork { @store.once("value", timeout: 120) { @store.incr("made", initial: 1).to_s } } }
    children.each { |one| Process.wait(one) }
    assert_equal %w[1 1], @store.values_at("value", "made")
    children = Array.new(2) { fork { exit!(Hashmere::Barrier.join(@store, "b", 3).wait(timeout: 120) == [1, 0]) } }
    assert_equal [1, 0], Hashmere::Barrier.join(@store, "b", 3).wait(timeout: 120)
    assert(children.all? { |one| Process.wait2(one)[1].success? })
    barrier = Hashmere::Barrier.join(@store, "cleared", 2)
    @store.clear
    assert_match(/cleared/, assert_raises(Hashmere::QueueBroken) { barrier.wait(timeout: nil) }.message)
  end

  def test_readers_writer_lock
    assert_equal(7, @store.read_lock("rw") do |abandoned|
      refute abandoned
      assert_equal [Process.pid], @store.rwlock_readers("rw")
      assert_nil @store.rwlock_writer("rw")
      assert_equal 8, Thread.new { @store.read_lock("rw", timeout: 0) { 8 } }.value
      @store.clear
      error = Thread.new { assert_raises(Hashmere::Busy) { @store.write_lock("rw", timeout: 0.01) { flunk } } }.value
      assert_match(/the readers-writer lock "rw" was held/, error.message)
      assert_raises(Hashmere::QueueReentered) { @store.write_lock("rw", timeout: nil) { flunk } }
      7
    end)
    @store.write_lock("rw") do
      assert_equal Process.pid, @store.rwlock_writer("rw")
      error = Thread.new { assert_raises(Hashmere::Busy) { @store.read_lock("rw", timeout: 0.01) { flunk } } }.value
      assert_match(/was held by process #{Process.pid} for 0.01 s/, error.message)
      assert_equal Process.pid, error.pid
    end
    refute @store.key?("rw")
    child = fork { @store.write_lock("rw") { Process.kill(:KILL, Process.pid) } }
    Process.wait(child)
    @store.read_lock("rw") { |abandoned| assert abandoned }
    @store.write_lock("rw") { |abandoned| assert abandoned }
    @store.write_lock("rw") { |abandoned| refute abandoned }
  end

  def test_shared_atomics
    atomic = Hashmere::Atomics.open(@store, "set").atomic("a")
    same = Hashmere::Atomics.open(@store, "set").atomic("a")
    assert_equal [0, 0, 5, 2**64 - 1], [atomic.load, atomic.fetch_add(5), same.fetch_add(-6), same.load]
    assert_equal [2**64 - 1, 2**64 - 2, 4, 7, 5, 1], [atomic.fetch_add(2**64 - 1), atomic.swap(4), atomic.fetch_or(3), atomic.fetch_and(5), atomic.fetch_xor(4), atomic.swap(9)]
    assert_equal [9, 9, 2], [atomic.compare_exchange(8, 1), atomic.compare_exchange(9, 2), same.load]
    assert_nil atomic.wait(2, timeout: 0.002)
    assert_equal 2, atomic.wait(1, timeout: 0)
    assert_raises(RangeError) { atomic.store(-1) }
    assert_raises(TypeError) { atomic.store("1") }
    assert_raises(TypeError) { Hashmere::Atomics.open(7, "set") }
    ["", "x" * 57].each { |name| assert_raises(Hashmere::QueueBadOption) { Hashmere::Atomics.open(@store, "set").atomic(name) } }
    assert_raises(ArgumentError) { Hashmere::Atomics.open(@store, "a\0b") }
    waker = Thread.new { same.store(7) }
    assert_equal 7, atomic.wait(2)
    waker.join
    @store.clear
    assert_equal 7, same.load, "clear leaves it"
    children = Array.new(2) do
      fork do
        assert_raises(Hashmere::QueueForked) { atomic.load }
        count = Hashmere::Atomics.open(@store, "set").atomic("count")
        2000.times { count.fetch_add }
      end
    end
    children.each { |child| assert Process.wait2(child)[1].success? }
    assert_equal 4000, Hashmere::Atomics.open(@store, "set").atomic("count").load
    assert Hashmere::Atomics.remove(@store, "set")
    refute Hashmere::Atomics.remove(@store, "set")
    assert_raises(Hashmere::QueueRemoved) { atomic.wait(7, timeout: 60) }
  end

  def test_semaphore
    @store.semaphore("two", 2) do |abandoned|
      refute abandoned
      @store.semaphore("two", 2, timeout: 0) do
        assert_equal [Process.pid] * 2, @store.semaphore_holders("two")
        assert_raises(Hashmere::QueueReentered) { @store.semaphore("two", 2) { flunk } }
        error = Thread.new { assert_raises(Hashmere::Busy) { @store.semaphore("two", 2, timeout: 0.01) { flunk } } }.value
        assert_match(/the permits of the semaphore "two" were held by process #{Process.pid} for/, error.message)
        assert_raises(Hashmere::QueueBroken) { @store.semaphore("two", 3) { flunk } }
      end
    end
    refute @store.key?("two")
    child = fork { @store.semaphore("two", 2) { Process.kill(:KILL, Process.pid) } }
    Process.wait(child)
    @store.semaphore("two", 2) { |abandoned| assert abandoned }
    assert_raises(Hashmere::QueueBadOption) { @store.semaphore("two", 0) { flunk } }
  end

  def test_once_within_once_is_refused
    value = @store.once("key") do
      assert_equal Process.pid, @store.once_holder("key")
      error = assert_raises(Hashmere::QueueReentered) { @store.once("key", timeout: nil) { flunk } }
      assert_match(/`once` of "key"/, error.message)
      error = Thread.new { assert_raises(Hashmere::Busy) { @store.once("key", timeout: 0.01) { flunk } } }.value
      assert_match(/the value of "key" was being computed by process #{Process.pid}/, error.message)
      @store.once("other") { "in" }
    end
    assert_equal "in", value
    assert_nil @store.once_holder("key")
    assert_raises(IOError) { @store.once("failed") { raise IOError } }
    assert_equal "now", @store.once("failed") { "now" }
  end
end
