# frozen_string_literal: true

require_relative "helper"
require "timeout"

# Queues between processes, and waiting for each other.
class TestQueues < StoreTest
  def pool = Hashmere::Pool.open(@store, "jobs", elements: 16, bytes: 32)

  def test_elements
    assert_raises(Hashmere::QueueNotFound) { Hashmere::Pool.open(@store, "jobs") }
    pool = self.pool
    todo = pool.queue("todo")
    hand = pool.hand
    assert_nil hand.pull(todo)
    job = hand.pull(pool.free)
    assert_equal [0, 32], [job.number, job.size]
    assert job.write(0, "hello").push(todo)
    assert_raises(Hashmere::Closed) { job.push(todo) }
    assert_equal [15, 1], [pool.free.size, todo.size]
    job = hand.pull(todo, timeout: 5)
    assert_equal "hello", job.read(0, 5)
    assert_raises(IndexError) { job.read(30, 3) }
    assert_raises(IndexError) { job.write(30, "abc") }
    job.give_back
    assert_equal 1, todo.size
    bounded = pool.queue("bounded", kind: :mpsc, bound: 1)
    assert_raises(Hashmere::QueueExists) { pool.queue("todo", kind: :spsc) }
    assert_raises(ArgumentError) { pool.queue("x", kind: :other) }
    first, second = hand.pull(pool.free), hand.pull(pool.free)
    assert first.push(bounded)
    refute second.push(bounded)
    assert_equal 1, pool.stats[:held]
    assert_raises(TypeError) { hand.pull(pool) }
    assert_raises(TypeError) { Hashmere::Pool.open(7, "x") }
    hand.close
    assert_raises(Hashmere::Closed) { second.push(bounded) }
    assert_equal 0, pool.stats[:held]
    assert Hashmere::Pool.remove(@store, "jobs")
  end

  # Work for processes, one of which is killed with an element in its hand.
  def test_work_with_a_killed_worker
    pool = self.pool
    todo, done = pool.queue("todo"), pool.queue("done")
    workers = Array.new(3) do |n|
      fork do
        mine = self.pool
        from, to, hand = mine.queue("todo"), mine.queue("done"), mine.hand
        while (job = hand.pull(from, timeout: 20))
          sleep if n.zero? # holds it until it is killed
          number = Integer(job.read(0, 4), 10)
          job.write(0, format("%04d%08d", number, number * number)).push(to)
        end
      end
    end
    hand = pool.hand
    100.times.each_slice(10) do |numbers|
      numbers.each { |number| hand.pull(pool.free, timeout: 20).write(0, format("%04d", number)).push(todo) }
      sleep 0.02 until workers.size < 3 || pool.stats[:held].positive? || todo.empty?
      Process.kill(:KILL, workers.first) && Process.wait(workers.shift) if workers.size == 3
      numbers.each do
        job = hand.pull(done, timeout: 20)
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
    hand = pool.hand
    in_child do
      hand.pull(pool.free)
      false
    rescue Hashmere::QueueForked
      true
    end
    assert hand.pull(pool.free)
  end

  def test_a_wait_hears_threads_and_timeouts
    pool = self.pool
    hand = pool.hand
    todo = pool.queue("todo")
    assert_raises(Timeout::Error) { Timeout.timeout(0.1) { hand.pull(todo, timeout: 60) } }
    thread = Thread.new { hand.pull(todo, timeout: 60).read(0, 1) }
    sleep 0.05
    assert_raises(ThreadError) { hand.pull(todo) }
    other = pool.hand
    other.pull(pool.free).write(0, "x").push(todo)
    assert_equal "x", thread.value
  end

  def test_waiting_for_a_key
    assert_nil @store.wait("a", nil, timeout: 0.01)
    child = fork { sleep 0.05 and @store["a"] = "1" }
    version = @store.wait("a", nil, timeout: 20)
    assert_equal @store.version("a"), version
    Process.wait(child)
    assert_equal version, @store.wait("a", 0, timeout: 0)
    @store.delete("a")
    assert_equal 0, @store.wait("a", version, timeout: 1)
  end

  def test_mutex_once_and_barrier
    assert_equal(7, @store.lock("m") do |abandoned|
      refute abandoned
      assert_raises(Hashmere::Busy) { @store.lock("m", timeout: 0.01) { flunk } }
      7
    end)
    refute @store.key?("m")
    child = fork { @store.lock("m") { Process.kill(:KILL, Process.pid) } }
    Process.wait(child)
    @store.lock("m") { |abandoned| assert abandoned }
    children = Array.new(4) { fork { @store.once("value", timeout: 20) { @store.incr("made", initial: 1).to_s } } }
    children.each { |one| Process.wait(one) }
    assert_equal %w[1 1], @store.values_at("value", "made")
    children = Array.new(2) { fork { exit!(Hashmere::Barrier.join(@store, "b", 3).wait(timeout: 20) == [1, 0]) } }
    assert_equal [1, 0], Hashmere::Barrier.join(@store, "b", 3).wait(timeout: 20)
    assert(children.all? { |one| Process.wait2(one)[1].success? })
  end
end
