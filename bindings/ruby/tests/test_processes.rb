# frozen_string_literal: true

require_relative "helper"
require "socket"
require "timeout"

# Threads, forked children, a pre-forking server, the garbage collector.
class TestProcesses < StoreTest
  def test_forked_children_and_parent_go_on
    children = Array.new(4) { fork { 500.times { @store.incr("n", initial: 1) } } }
    500.times { @store.incr("n", initial: 1) }
    children.each { |child| Process.wait(child) }
    assert_equal "2500", @store["n"]
  end

  def test_a_store_for_its_users_goes_with_the_last_however_that_one_goes
    path = "#{@path}.last"
    mark = { remove_on_last_close: true }
    leave = lambda do |&ending|
      Process.wait(fork { Hashmere.open(path, **mark).tap { |store| store["k"] = "v" } && ending.call })
    end
    leave.call { exit }
    refute File.exist?(path)
    [-> { exit!(0) }, -> { Process.kill(:KILL, Process.pid) && sleep }].each do |ending|
      leave.call(&ending)
      assert File.exist?(path)
      Hashmere.open(path, **mark) { |store| assert_equal 0, store.size }
      refute File.exist?(path)
    end
  end

  def test_a_store_closed_by_a_child_is_open_in_the_parent
    @store["a"] = "1"
    in_child do
      @store.close
      begin
        @store["a"]
        false
      rescue Hashmere::Closed
        true
      end
    end
    assert_equal "1", @store["a"]
  end

  # A child that was forked while another thread was in a long call can still close.
  def test_fork_during_long_calls
    @store["long"] = "x" * (4 << 20)
    stop = false
    thread = Thread.new { @store["long"] until stop }
    5.times do
      in_child do
        ok = @store["long"].size == 4 << 20
        @store.close
        ok
      end
    end
    stop = true
    thread.join
    assert_empty @store.check
  end

  def test_views_and_reservations_over_a_fork
    @store["v"] = "old"
    @store.view("v") do |view|
      @store["v"] = "new"
      in_child { view.to_s == "old" }
      assert_equal "old", view.to_s
    end
    @store.reserve("r", 3) do |room|
      in_child do
        room.send(:_commit)
        false
      rescue Hashmere::InvalidState
        true
      end
      room.write(0, "abc")
    end
    assert_equal "abc", @store["r"]
  end

  # Workers share a listening socket and the store that was opened before they were forked; one is killed.
  def test_under_a_preforking_server
    server = TCPServer.new("127.0.0.1", 0)
    port = server.addr[1]
    workers = Array.new(3) do
      fork do
        loop do
          client = server.accept
          client.gets
          client.puts @store.incr("requests", initial: 1)
          client.close
        end
      end
    end
    ask = lambda do
      TCPSocket.open("127.0.0.1", port) do |socket|
        socket.puts "x"
        Integer(socket.gets)
      end
    end
    answers = Array.new(60) { ask.call }
    Process.kill(:KILL, workers.first)
    Process.wait(workers.shift)
    answers += Array.new(60) { ask.call }
    assert_equal (1..120).to_a, answers.sort
  ensure
    workers&.each { |worker| Process.kill(:KILL, worker) && Process.wait(worker) }
    server&.close
  end

  def test_threads
    threads = Array.new(4) do |n|
      Thread.new { 300.times { |i| @store["t#{n}"] = "#{i}" * 100 and @store.incr("n", initial: 1) } }
    end
    threads.each(&:join)
    assert_equal "1200", @store["n"]
  end

  def test_the_others_run_during_long_calls
    value = "x" * (32 << 20)
    ticks = 0
    begin
      done = false
      ticker = Thread.new { (ticks += 1) && Thread.pass until done }
      # It passes at once when this thread could run, so more than a tick or two mean that it ran during the call. On a busy machine it
      # may not get a processor then.
      ran = (1..200).find do
        before = ticks
        @store["long"] = value
        ticks > before + 5
      end
      assert ran, "no other thread ran during long calls"
      assert_equal value, @store["long"]
    ensure
      done = true
      ticker.join
    end
  end

  def test_closing_during_a_long_call
    value = "x" * (16 << 20)
    @store["long"] = value
    reader = Thread.new do
      loop { return_size(@store["long"]) }
    rescue Hashmere::Closed
      :closed
    end
    sleep 0.05
    @store.close
    assert_equal :closed, reader.value
  end

  def return_size(string) = assert_equal(16 << 20, string.size)

  def test_gc_stress
    text = "v" * 600
    GC.stress = true
    begin
      @store["a#{1}"] = "b#{2}"
      assert_equal "b2", @store["a#{1}"]
      @store["long"] = text
      assert_equal 600, @store["long"].size
      @store.set_many({ "x" => "1", "y" => "2" })
      assert_equal ["1", nil], @store.values_at("x", "z")
      assert_equal 4, @store.each.to_a.size
      @store.update_with("x") { |old| "#{old}1" }
      assert_equal "11", @store.get_item("x").value
      assert_equal 7, @store.incr("n", initial: 7)
      @store.cas("y", "3", expected: "2")
      @store.view("y") { |view| assert_equal "3", view.to_s }
      @store.reserve("w", 2) { |room| room.write(0, "ab") }
      @store.random
      @store.stats
      @store.check
      @store.clients
      assert_equal "ab", @store.delete("w")
      assert_raises(Hashmere::NotFound) { Hashmere.open("absent #{1}", create: false) }
    ensure
      GC.stress = false
    end
    GC.compact if GC.respond_to?(:compact)
    assert_equal "b2", @store["a1"]
  end

  def test_forgotten_objects_are_released
    forget(30)
    GC.start
    # The collector looks at the stack for what may be a reference, so a few may be left.
    assert_operator File.foreach("/proc/self/maps").grep(/#{@path}/).size, :<, 10
    assert_empty @store.check
    assert_equal "29", @store["k"]
    100.times { Hashmere.open(@path)["k"] }
  end

  def forget(count)
    count.times do |n|
      store = Hashmere.open(@path)
      store["k"] = n.to_s
      store.view("k")
      store.each_key.next
    end
  end

  def test_ractors_are_refused
    script = 'Warning[:experimental] = false; begin; Ractor.new(ARGV[0]) { |path| Hashmere.open(path) }.take; ' \
             "rescue Ractor::RemoteError => e; puts e.cause.class, e.cause.message; end"
    lib = $LOAD_PATH.map { |folder| "-I#{folder}" }
    said = IO.popen([RbConfig.ruby, *lib, "-rhashmere", "-e", script, @path], err: File::NULL, &:read)
    assert_match(/\ATypeError\na store cannot be used in a Ractor/, said)
  end
end
