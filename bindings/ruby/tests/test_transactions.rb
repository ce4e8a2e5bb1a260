# frozen_string_literal: true

require_relative "helper"

# Several keys at one moment: batches, conditions, transactions, snapshot reads.
class TestTransactions < StoreTest
  Condition = Hashmere::Condition

  def test_batch
    batch = Hashmere::WriteBatch.new
    assert_empty batch
    assert_equal [], @store.write_batch(batch)
    batch.set("a", "1").set(:b, "x", ttl: 100, flags: 7).incr("a", 4).incr("made", 2, initial: 40).incr("no").decr("made", 3)
    batch.append("b", "z").prepend("b", "w").append("no", "x").touch("made", ttl: 50).delete("no").get("b").get("no").delete("a")
    assert_equal 14, batch.size
    results = @store.write_batch(batch)
    item = results.delete_at(11)
    assert_equal ["wxz", 7, 0], [item.value, item.flags, item.version]
    assert_kind_of Integer, results[1]
    assert_equal [5, 40, nil, 37, true, true, false, true, false, nil, true], results.drop(2)
    assert_equal ["wxz", "37", nil, nil], @store.values_at("b", "made", "a", "no")
    assert_in_delta 50, @store.ttl("made"), 49
    assert_equal Encoding::UTF_8, @store["b"].encoding
    # The same once more, and emptied.
    assert_equal 14, @store.write_batch(batch).size
    assert_empty batch.clear
    assert_equal ["é", ""], @store.write_batch { |b| b.set("e", "é").get("e").set("empty", "").get("empty") }.grep(Hashmere::Item).map(&:value)
  end

  def test_every_kind_of_counter
    batch = Hashmere::WriteBatch.new.incr_signed("s", 1, initial: -2, flags: 3).incr_signed("s", -5).incr_signed("no").incr_float("no", 1)
    batch.incr_float("f", 1, initial: 0.1).incr_float("f", 0.2)
    assert_equal [-2, -7, nil, nil, 0.1, 0.3], @store.write_batch(batch)
    assert_equal ["-7", "0.3", 3], [@store["s"], @store["f"], @store.flags("s")]
    counted = @store.transaction do |t|
      assert_nil t.incr_signed("no")
      assert_nil t.incr_float("no", 1)
      [t.incr_signed("s"), t.incr_float("f", -1), t.incr_float("new", 1, initial: 2, ttl: 50)]
    end
    assert_equal [-6, -0.7, 2.0], counted
    assert_in_delta 50, @store.ttl("new"), 49
    assert_raises(Hashmere::Overflow) { @store.write_batch { |b| b.set("f", "x").incr_signed("s", -2**63) } }
    assert_raises(Hashmere::NotANumber) { @store.write_batch { |b| b.incr_signed("f") } }
    assert_raises(Hashmere::InvalidState) { @store.write_batch { |b| b.incr_float("f", Float::NAN) } }
    assert_raises(TypeError) { @store.transaction { |t| t.incr_signed("s", 0.5) } }
    assert_raises(RangeError) { @store.transaction { |t| t.incr_signed("s", 2**63) } }
    assert_raises(TypeError) { batch.incr_float("f", "1") }
    assert_equal ["-6", "-0.7"], @store.values_at("s", "f")
  end

  def test_batch_that_cannot_be
    @store["text"] = "x"
    error = assert_raises(Hashmere::NotANumber) { @store.write_batch { |b| b.set("a", "1").incr("text") } }
    assert_equal 35, error.code
    refute @store.key?("a")
    many = Hashmere::WriteBatch.new
    1024.times { |i| many.set("key#{i}", "x") }
    assert_equal 1024, @store.write_batch(many).size
    many.delete("one more")
    assert_raises(Hashmere::TooManyKeys) { @store.write_batch(many) }
    assert_raises(ArgumentError) { @store.write_batch }
    assert_raises(ArgumentError) { @store.write_batch(many) { nil } }
    assert_raises(TypeError) { @store.write_batch("no batch") }
    assert_raises(TypeError) { many.set(1, "x") }
    assert_raises(TypeError) { many.set("a", 1) }
    assert_raises(TypeError) { many.get(Hashmere::HashedKey.new("a", 1)) }
    assert_raises(RangeError) { many.incr("a", 2**63) }
    assert_raises(TypeError) { many.incr("a", 1.5) }
    assert_raises(TypeError) { @store.transaction { |t| t.incr("a", 1.5) } }
    assert_raises(TypeError) { many.dup }
    assert_equal 1025, many.size
  end

  def test_conditions
    @store["leader"] = "me"
    all = [Condition.present("leader"), Condition.value(:leader, "me"), Condition.version("leader", @store.version("leader")),
           Condition.absent("other"), Condition.version("other", 0)]
    take = Hashmere::WriteBatch.new.set("leader", "you")
    look = Hashmere::WriteBatch.new.get("leader")
    branch = @store.write_batch_if(all, take, look)
    assert_equal [true, [@store.version("leader")]], branch.to_a
    branch = @store.write_batch_if(all, take, look)
    assert_equal [false, "you"], [branch.succeeded, branch.results[0].value]
    assert_equal [false, []], @store.write_batch_if(all, take).to_a
    assert @store.write_batch_if([], look).succeeded
    held = all.map { |one| @store.write_batch_if([one], look).succeeded }
    assert_equal [true, false, false, true, true], held
    assert_raises(TypeError) { @store.write_batch_if(["leader"], take) }
    assert_raises(TypeError) { Condition.value("leader", nil).then { |one| @store.write_batch_if([one], take) } }
    assert_raises(TypeError) { @store.write_batch_if(all, nil) }
  end

  def test_transaction
    @store["alice"] = "100"
    answer = @store.transaction do |t|
      assert_equal [70, 30], [t.decr("alice", 30), t.incr("bob", 30, initial: 30)]
      assert_equal ["70", true, "100", false], [t["alice"], t.key?(:bob), @store["alice"], @store.key?("bob")]
      t.set("note", "b", flags: 4, ttl: 100).append("note", "c")
      assert_equal [true, false, false], [t.prepend("note", "a"), t.append("no", "x"), t.touch("no")]
      assert_nil t.get("no")
      assert_nil t.incr("no")
      assert t.touch("note", ttl: 50)
      t["never"] = "x"
      t.delete("never")
      refute t.has_key?("never")
      :done
    end
    assert_equal :done, answer
    assert_equal({ "alice" => "70", "bob" => "30", "note" => "abc" }, @store.to_h)
    assert_equal 4, @store.flags("note")
    assert_in_delta 50, @store.ttl("note"), 49
  end

  def test_transaction_that_does_not_happen
    @store["a"] = "1"
    assert_raises(KeyError) { @store.transaction { |t| t["a"] = "2"; raise KeyError } }
    assert_equal :out, @store.transaction { |t| t["a"] = "2"; break :out }
    assert_equal(:thrown, catch(:it) { @store.transaction { |t| t["a"] = "2"; throw :it, :thrown } })
    assert_raises(Interrupt) { @store.transaction { |t| t["a"] = "2"; raise Interrupt } }
    assert_equal "1", @store["a"]
    kept = nil
    @store.transaction { |t| kept = t }
    assert_raises(Hashmere::Closed) { kept["a"] }
    assert_raises(TypeError) { Hashmere::Transaction.new }
    assert_raises(ArgumentError) { @store.transaction }
    assert_raises(Hashmere::Closed) { @store.transaction { @store.close } }
  end

  def test_transaction_that_runs_again
    @store["a"] = "1"
    runs = 0
    @store.transaction do |t|
      seen = t["a"]
      @store["a"] = "2" if (runs += 1) == 1
      t["b"] = seen
    end
    assert_equal [2, "2"], [runs, @store["b"]]
    # What was raised because of what it saw too early is not raised; a second look is no different.
    [-> { raise KeyError }, ->(t) { t["a"] }].each do |then_|
      runs = 0
      @store.transaction do |t|
        t["a"]
        @store["a"] = "x" if (runs += 1) == 1
        then_.call(*[t].first(then_.arity)) if runs == 1
      end
      assert_equal 2, runs
    end
    runs = 0
    assert_raises(Interrupt) do
      @store.transaction do |t|
        t["a"]
        @store["a"] = "y"
        runs += 1
        raise Interrupt
      end
    end
    assert_equal 1, runs
    assert_raises(Hashmere::NotANumber) { @store.transaction { |t| t.incr("a") } }
  end

  def test_bank
    accounts = Array.new(20) { |i| "account:#{i}" }
    accounts.each { |account| @store[account] = "1000" }
    clerks = Array.new(2) do |clerk|
      fork do
        chance = Random.new(clerk)
        500.times do
          from, to = accounts.sample(random: chance), accounts.sample(random: chance)
          @store.transaction do |t|
            next if t[from] == "0"

            t.decr(from)
            t.incr(to)
          end
        end
        exit!(0)
      end
    end
    threads = Array.new(2) { Thread.new { 200.times { @store.transaction { |t| t.incr("counter", initial: 1) } } } }
    200.times { assert_equal 20_000, @store.get_many_snapshot(*accounts).sum { |item| item.value.to_i } }
    threads.each(&:join)
    clerks.each { |pid| assert_predicate Process.wait2(pid).last, :success? }
    assert_equal "400", @store["counter"]
    item, none = @store.get_many_snapshot("account:1", "no")
    assert_nil none
    assert_equal @store.get_item("account:1"), item
    assert_equal [], @store.get_many_snapshot
  end
end
