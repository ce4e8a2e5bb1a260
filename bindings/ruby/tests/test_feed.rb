# frozen_string_literal: true

require_relative "helper"
require "timeout"

# The change feed: events of each kind, resuming, a place that is gone, transactions, clears, waits, event loops, errors.
class TestFeed < StoreTest
  def options = { feed: 1 << 20, feed_values: true, origin: 7 }

  # What there is.
  def texts(feed)
    found = []
    while (event = feed.next(0))
      found << (event.key ? [event.operation, event.key, event.value].compact.join(" ") : event.kind.to_s)
    end
    found
  end

  def test_every_key_then_the_changes
    @store["a"] = "1"
    @store.feed(:start, values: true) do |feed|
      reset = feed.next(0)
      assert_equal [:reset, :asked, nil, nil], [reset.kind, reset.reason, reset.token, reset.key]
      assert_equal ["read a 1", "synced"], texts(feed)
      @store.set("b", "two", flags: 9, expires_at: Time.at(9_000_000_000))
      @store[Hashmere::HashedKey.new("h", 77)] = "v"
      @store.delete("a")
      assert_equal 3, feed.lag
      event = feed.next(60)
      assert_equal [:change, :set, "b", "two", :bytes, 3], event.to_a.first(6)
      assert_equal [@store.version("b"), 9, 9_000_000_000_000, 7], [event.version, event.flags, event.expires_at_ms, event.origin]
      assert_equal [nil, nil, feed.token], [event.transaction, event.supplied_hash, event.token]
      assert_in_delta Time.now.to_f, event.ts_ms / 1000.0, 60
      assert_equal 77, feed.next(0).supplied_hash
      event = feed.next(0)
      assert_equal [:delete, nil, :absent], [event.operation, event.value, event.value_state]
      assert_equal [0, nil, false], [feed.lag, feed.next(0.01), feed.closed?]
    end
    feed = @store.feed
    feed.close
    assert_predicate feed, :closed?
    assert_raises(Hashmere::Closed) { feed.next(0) }
  end

  def test_a_prefix_without_values
    feed = @store.feed(prefix: "user:")
    @store["page:1"] = "x"
    @store["user:1"] = "Ada"
    event = feed.next(0)
    assert_equal ["user:1", nil, :not_kept, 3], [event.key, event.value, event.value_state, event.value_len]
    @store.clear
    assert_equal ["clear"], texts(feed)
  end

  def test_resuming_and_transactions
    feed = @store.feed(values: true)
    before = feed.token
    batch = Hashmere::WriteBatch.new
    batch.set("a", "1")
    batch.set("b", "2")
    @store.write_batch(batch)
    @store["c"] = "3"
    first, second = feed.first(2)
    assert_equal [[0, 2], [1, 2]], [first, second].map { |event| event.transaction.to_a.last(2) }
    assert_equal first.transaction.id, second.transaction.id
    assert_equal ["set a 1", "set b 2", "set c 3"], texts(@store.feed(before, values: true))
    assert_equal ["set c 3"], texts(@store.feed(second.token, values: true))
    assert_equal 3, texts(@store.feed(first.token)).size # whole again
  end

  def test_a_place_that_is_gone
    token = @store.feed(&:token)
    60_000.times { |number| @store["k"] = number.to_s }
    feed = @store.feed(token, values: true)
    assert_equal :gone, feed.next(0).reason
    assert_equal ["read k 59999", "synced"], texts(feed)
  end

  def test_off_and_on
    assert Hashmere::Feed.disable(@store)
    refute Hashmere::Feed.disable(@store)
    assert_nil Hashmere::Feed.info(@store)
    error = assert_raises(Hashmere::FeedOff) { @store.feed }
    assert_equal 80, error.code
    assert_match(/`feed`/, error.message)
    assert_match(/1 MiB/, assert_raises(Hashmere::InvalidState) { Hashmere::Feed.enable(@store, 5) }.message)
    assert_raises(Hashmere::BadOption) { Hashmere.open("small", feed: 5) }
    Hashmere::Feed.enable(@store, 1 << 20, values: true)
    info = Hashmere::Feed.info(@store)
    assert_equal [true, info[:oldest]], [info[:values], info[:position]]
    error = assert_raises(Hashmere::BadToken) { @store.feed("yesterday") }
    assert_equal 81, error.code
    assert_match(/`yesterday`/, error.message)
    feed = @store.feed
    Hashmere::Feed.disable(@store)
    assert_raises(Hashmere::FeedOff) { feed.next(0) }
  end

  def test_other_threads_run_and_interrupts_are_heard_while_it_waits
    feed = @store.feed(values: true)
    writer = Thread.new do
      sleep 0.05
      @store["late"] = "1"
    end
    assert_equal "late", feed.next(60).key
    writer.join
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { feed.next } }
    waiting = Thread.new { feed.next }
    sleep 0.05
    assert_raises(ThreadError) { feed.lag }
    waiting.kill.join
    @store["again"] = "1"
    assert_equal "again", feed.next(60).key
  end

  def test_a_descriptor
    feed = @store.feed(values: true)
    assert_nil IO.select([feed], nil, nil, 0.02)
    3.times do
      @store["a"] = "1"
      assert IO.select([feed], nil, nil, 60)
      assert_equal ["set a 1"], texts(feed)
      assert_nil IO.select([feed], nil, nil, 0.02)
    end
  end
end
