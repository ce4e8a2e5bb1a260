# frozen_string_literal: true

require_relative "helper"

# What a Hash does not have: conditions, counters, time, numbers, views.
class TestOperations < StoreTest
  def test_add_replace_append
    assert_nil @store.replace("a", "0")
    version = @store.add("a", "1")
    assert_kind_of Integer, version
    assert_nil @store.add("a", "2")
    assert_operator @store.replace("a", "3"), :>, version
    @store.append("a", "4")
    @store.prepend("a", "2")
    assert_equal "234", @store["a"]
    assert_nil @store.append("b", "x")
  end

  def test_cas_and_remove
    version = @store.cas("a", "1", version: 0)
    assert_nil @store.cas("a", "2", version: 0)
    assert_equal @store.version("a"), version
    version = @store.cas("a", "2", version: version)
    assert_nil @store.cas("a", "3", expected: "1")
    assert @store.cas("a", "3", expected: "2")
    refute @store.delete?("a", version: version)
    refute @store.delete?("a", expected: "2")
    assert @store.delete?("a", expected: "3")
    refute @store.delete?("a")
  end

  def test_update
    assert_equal "1", @store.update_with("a", ttl: 60) { |old| (old.to_i + 1).to_s }
    assert_equal "2", @store.update_with("a") { |old| (old.to_i + 1).to_s }
    assert_in_delta 60, @store.ttl("a"), 50
    assert_equal "2", @store.update_with("a") { nil }
    calls = 0
    @store.update_with("a") do |old|
      Thread.new { @store["a"] = "10" }.join if (calls += 1) == 1
      "#{old}!"
    end
    assert_equal ["10!", 2], [@store["a"], calls]
    assert_raises(ArgumentError) { @store.update_with("a") { raise ArgumentError } }
    assert_equal :out, @store.update_with("a") { break :out }
    assert_nil @store.update_with("a") { Hashmere::REMOVE }
    refute @store.key?("a")
  end

  def test_update_of_its_own_key
    @store["b"] = "0"
    writes = [-> { @store["a"] = "x" }, -> { @store.set("a", "x", ttl: 1) }, -> { @store.delete("a") }, -> { @store.append("a", "x") },
              -> { @store.update_with("a") { "x" } }, -> { @store.cas("a", "x", version: 0) }, -> { @store.incr("a") },
              -> { @store.update_with("b") { @store["a"] = "x" } }, -> { @store.clear }]
    [nil, "1"].each do |there|
      there ? @store["a"] = there : @store.delete("a")
      value = @store.update_with("a") do |old|
        (there ? writes : writes.first(2)).each { |write| assert_match(/"a"/, assert_raises(Hashmere::Reentered, &write).message) }
        assert_equal [there], [@store["a"]]
        @store["b"] = "written"
        @store.update_with("c") { "too" }
        "#{old}!"
      end
      assert_equal ["#{there}!", "#{there}!", "written", "too"], [value, @store["a"], @store["b"], @store["c"]]
    end
    assert_raises(Hashmere::Reentered) { @store.update_with("a") { @store["a"] = "x" } }
    @store["a"] = "free"
    other = Hashmere.open(@store.path)
    assert_raises(Hashmere::InvalidState) { @store.update_with("a") { |old| other["a"] = old.succ } }
    other.close
    hashed = Hashmere::HashedKey.new("a", 7)
    assert_raises(Hashmere::Reentered) { @store.update_with(hashed) { @store.set(hashed, "x") } }
    assert_raises(Hashmere::Closed) do
      @store.update_with("a") do
        @store.close
        "x"
      end
    end
  end

  # The block lasts until it was beaten, for 2 ms at most.
  def test_update_that_others_beat
    @store.set("a", "0", ttl: 600, flags: 7)
    writer = fork { loop { @store.set("a", "0", ttl: 600, flags: 7) } }
    20.times do |n|
      with = n.odd? ? { flags: 9 } : { ttl: 60 }
      value = @store.update_with("a", **with) do
        seen = @store.version("a")
        till = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.002
        nil while @store.version("a") == seen && Process.clock_gettime(Process::CLOCK_MONOTONIC) < till
        "updated"
      end
      assert_equal "updated", value
    end
    Process.kill(:KILL, writer)
    Process.wait(writer)
    other = Hashmere.open(@store.path)
    calls = 0
    beaten = lambda do |with, answer|
      @store.set("a", "0", ttl: 600, flags: 7)
      calls = 0
      @store.update_with("a", **with) do
        other.set("a", "0", ttl: 600, flags: 7) if (calls += 1) <= 30
        answer
      end
    end
    assert_equal ["1", 7], [beaten.({}, "1"), @store.flags("a")]
    assert_in_delta 600, @store.ttl("a"), 100
    assert_equal ["1", 9], [beaten.({ flags: 9 }, "1"), @store.flags("a")]
    assert_in_delta 600, @store.ttl("a"), 100
    assert_equal ["1", 7], [beaten.({ ttl: 60 }, "1"), @store.flags("a")]
    assert_in_delta 60, @store.ttl("a"), 50
    assert_equal ["0", 1], [beaten.({}, nil), calls]
    assert_nil beaten.({}, Hashmere::REMOVE)
    refute @store.key?("a")
    other.close
  end

  def test_count_with_and_without_what_expired
    200.times { |n| @store.set("k#{n}", "v", ttl: 0.001) }
    @store["stays"] = "v"
    sleep 0.02
    assert_equal [201, 1, 1], [@store.size, @store.len_exact, @store.keys.size]
    @store.compact
    assert_equal [1, 1], [@store.size, @store.len_exact]
  end

  def test_get_and_touch
    assert_nil @store.get_and_touch("a", ttl: 1)
    @store.set("a", "1", flags: 5)
    seen = @store.get_and_touch("a", ttl: 60)
    assert_equal ["1", 5, @store.version("a")], [seen.value, seen.flags, seen.version]
    assert_in_delta 60, @store.ttl("a"), 50
  end

  def test_parallel_scan
    wanted = (0...3000).to_h { |n| ["k#{n}", n.to_s * 5] }
    @store.set_many(wanted)
    assert_equal wanted, @store.parallel_scan(threads: 3).to_h
    assert_equal 1111, @store.parallel_scan(prefix: "k1").count
    assert_raises(Hashmere::Argument) { @store.parallel_scan(threads: 0) {} }
  end

  def test_backup
    @store.set_many((0...500).to_h { |n| ["k#{n}", n.to_s] })
    copy = "#{@path}.copy.mere"
    told = []
    report = @store.backup(copy) { |done, of| told << [done, of] }
    assert_equal [500, false], report.values_at(:items, :thinned)
    assert_operator told.last[0], :<=, 500
    assert_raises(Hashmere::BackupExists) { @store.backup(copy) }
    @store["more"] = "x"
    assert_equal 501, @store.backup(copy, replace: true)[:items]
    assert_raises(KeyError) { @store.backup(copy, replace: true) { raise KeyError } }
    Hashmere.open(copy, create: false) { |store| assert_equal [501, "77"], [store.size, store["k77"]] }
  ensure
    Hashmere.remove(copy)
  end

  def test_counters
    assert_nil @store.incr("n")
    assert_equal 5, @store.incr("n", initial: 5)
    assert_equal 15, @store.incr("n", 10)
    assert_equal 14, @store.decr("n")
    assert_equal 0, @store.decr("n", 100)
    assert_equal 2, @store.decr("n", -2)
    assert_equal 0, @store.incr("n", -3)
    assert_equal 2**64 - 1, @store.incr("n", 2**64 - 1)
    assert_equal 0, @store.incr("n")
    @store["word"] = "x"
    assert_raises(Hashmere::NotANumber) { @store.incr("word") }
    assert_equal [5, 2, 0, nil, 0], [@store.inc_ref("r", 5), @store.dec_ref("r", 3), @store.dec_ref("r", 9), @store.dec_ref("r", 1), @store.inc_ref("r", 0)]
    refute @store.key?("r")
    assert_equal [1, 2, 1, 0, nil], [@store.inc_ref("r"), @store.inc_ref("r"), @store.dec_ref("r"), @store.dec_ref("r"), @store.dec_ref("r")]
  end

  def test_kinds_of_counters
    assert_nil @store.incr_signed("s", -5)
    assert_equal(-5, @store.incr_signed("s", 1, initial: -5, flags: 3))
    assert_equal(-4, @store.incr_signed("s"))
    assert_equal ["-4", 3], [@store["s"], @store.flags("s")]
    assert_raises(Hashmere::NotANumber) { @store.incr("s") }
    assert_equal 42, assert_raises(Hashmere::Overflow) { @store.incr_signed("s", -2**63) }.code
    assert_raises(RangeError) { @store.incr_signed("s", 2**63) }
    assert_raises(TypeError) { @store.incr_signed("s", 0.5) }
    assert_raises(TypeError) { @store.incr_signed("s", 1, initial: 0.5) }
    assert_equal "-4", @store["s"]

    assert_nil @store.incr_float("f", 1)
    assert_equal [0.1, 0.3], [@store.incr_float("f", 1, initial: 0.1), @store.incr_float("f", 0.2)]
    10.times { @store.incr_float("sum", 0.1, initial: 0.1) }
    assert_equal ["0.3", "1"], [@store["f"], @store["sum"]]
    [Float::NAN, Float::INFINITY].each do |nothing|
      assert_raises(Hashmere::InvalidState) { @store.incr_float("f", nothing) }
      assert_raises(Hashmere::InvalidState) { @store.incr_float("new", 1, initial: nothing) }
    end
    @store["big"] = "1e308"
    assert_raises(Hashmere::Overflow) { @store.incr_float("big", 1.7e308) }
    assert_raises(TypeError) { @store.incr_float("f", "1") }
    assert_equal ["0.3", "1e308", nil], [@store["f"], @store["big"], @store["new"]]
  end

  def test_time
    value, ttl = in_time(0.03) { |seconds| @store.set("a", "1", ttl: seconds, flags: 9) && @store["a"] }
    assert_equal "1", value
    sleep ttl + 0.02
    assert_nil @store["a"]
    assert_nil @store.ttl("a")
    @store.set("b", "1", expires_at: Time.now + 100)
    assert_in_delta 100, @store.ttl("b"), 60
    assert_in_delta Time.now.to_f + 100, @store.expires_at("b").to_f, 60
    assert @store.touch("b")
    assert_equal Float::INFINITY, @store.ttl("b")
    refute @store.touch("a", ttl: 1)
    @store.set("c", "1", ttl: 0)
    refute @store.key?("c")
  end

  def test_records
    @store.set("a", "1", flags: 2**32 - 1)
    record = @store.get_item("a")
    assert_equal ["1", 2**32 - 1, nil, @store.uid_of("a")], [record.value, record.flags, record.expires_at, record.uid]
  end

  def test_random
    assert_nil @store.random
    20.times { |n| @store["k#{n}"] = n.to_s }
    drawn = Array.new(500) { @store.random }
    assert_operator drawn.uniq.size, :>, 10
    assert(drawn.all? { |key, value| key == "k#{value}" })
  end

  def test_views
    @store["v"] = "0123456789"
    view = @store.view("v")
    assert_predicate view, :up_to_date?
    @store["v"] = "new"
    refute_predicate view, :up_to_date?
    assert_predicate view, :zero_copy?
    assert_equal "0123456789", view.to_s
    assert_equal ["234", 51, "89", "", nil, nil], [view[2, 3], view[3], view[-2..], view[10..], view[11..], view[-11]]
    assert_equal "12", view[1...3]
    view.release
    view.release
    assert_raises(Hashmere::Closed) { view.to_s }
    assert_raises(Hashmere::Closed) { view.up_to_date? }
    assert_nil @store.view("absent")
    assert_raises(RuntimeError) { @store.reserve("w", 3) { |room| room.write(0, "abc"); raise "no" } }
    refute @store.key?("w")
    @store.reserve("w", 5) { |room| room.write(1, "abc") }
    assert_equal "\0abc\0", @store["w"]
    assert_raises(IndexError) { @store.reserve("w", 3) { |room| room.write(1, "abc") } }
    assert_raises(IndexError) { @store.reserve("w", 3) { |room| room[3] = 1 } }
  end

  def test_the_whole
    @store["a"] = "1"
    stats = @store.stats
    assert_equal 1, stats[:items]
    assert_equal 0, stats[:is_durable]
    assert_equal Process.pid, @store.clients.first[:pid]
    assert_empty @store.check
    assert_kind_of Integer, @store.compact
    assert_raises(Hashmere::InvalidState) { @store.sync }
    refute_predicate @store, :read_only?
    Hashmere.open(@path, read_only: true) do |store|
      assert_predicate store, :read_only?
      assert_equal "1", store["a"]
      assert_equal 30, assert_raises(Hashmere::ReadOnly) { store["a"] = "2" }.code
    end
  end

  def test_durable
    path = "#{@path}-durable.mere"
    Hashmere.open(path, durable: true) do |store|
      store["a"] = "1"
      assert_same store, store.sync
      store.remove
    end
    refute_path_exists path
  end
end
