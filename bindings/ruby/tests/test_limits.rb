# frozen_string_literal: true

require_relative "helper"
require "hashmere/limits"

# Rate limiters: what they promise for any interval, in one process and in several; values of the form that Python has. (Records expire
# by the machine's clock: what is longer than these tests take does not in them.)
class TestLimits < StoreTest
  SECOND = 1_000_000_000

  def setup
    super
    @now = 1_700_000_000 * SECOND
    @clock = -> { @now }
  end

  def bucket(**options) = Hashmere::TokenBucket.new(@store, **{ rate: 2e-3, burst: 3, clock: @clock, **options })

  def wait(seconds)
    @now += (seconds * SECOND).round
  end

  def test_a_bucket
    assert_equal [true, 3, 0, 0], bucket.peek("a").to_a
    assert_equal [2, 1, 0], Array.new(3) { bucket.take("a").remaining }
    assert_equal [false, 0, 500, 1500], bucket.take("a").to_a
    assert_predicate bucket.take("b", 3), :allowed?
    refute_predicate bucket.peek(:b), :allowed?
    wait 500
    assert_equal [true, 0, 0, 1500], bucket.take("a").to_a
    wait 1200
    assert_equal [false, 2, 300, 300], bucket.take("a", 3).to_a
    assert_predicate bucket.take("a", 2), :allowed?
    bucket.reset("a")
    assert_equal 3, bucket.peek("a", 3).remaining
    assert_equal (1_700_001_500 * SECOND).to_s, @store["limit:b"]
  end

  def test_a_window
    @now = 6000 * 60 * SECOND
    window = Hashmere::SlidingWindow.new(@store, limit: 4, period: 3600, clock: @clock)
    assert_equal [true, 1, 0, 3660], window.take("a", 3).to_a
    assert_equal "6000 3", @store["limit:a"]
    wait 1815
    assert_equal [false, 1, 1845, 1845], window.take("a", 2).to_a
    assert_predicate window.take("a"), :allowed?
    assert_equal "6030 1#{" 0" * 29} 3", @store["limit:a"]
    wait 1830
    assert_equal [false, 0, 15, 1815], window.take("a").to_a
    wait 15
    assert_equal [true, 0, 0, 3660], window.take("a", 3).to_a
    assert_equal "6061 3#{" 0" * 30} 1", @store["limit:a"]
    wait 60_000
    assert_equal [true, 4, 0, 0], window.peek("a").to_a
  end

  def test_no_interval_has_more_than_is_promised
    seed = Integer(ENV.fetch("HASHMERE_SEED", Random.new_seed))
    random = Random.new(seed)
    20.times do |round|
      limit = random.rand(1..20)
      period = [1e3, 86400.5, 1e6].sample(random: random)
      limiter = Hashmere::SlidingWindow.new(@store, limit: limit, period: period, clock: @clock)
      taken = []
      100.times do
        wait [0, 0, period / 60.0, period * random.rand / limit, period * random.rand].sample(random: random)
        cost = random.rand(1..limit)
        decision = limiter.take(round, cost)
        next taken << [@now, cost] if decision.allowed?

        now = @now
        wait decision.retry_after
        assert_predicate limiter.peek(round, cost), :allowed?, "HASHMERE_SEED=#{seed}"
        @now -= 1
        refute_predicate limiter.peek(round, cost), :allowed?, "HASHMERE_SEED=#{seed}"
        @now = now
      end
      taken.each do |begin_at, _|
        within = taken.sum { |at, cost| (begin_at...begin_at + (period * SECOND)).cover?(at) ? cost : 0 }
        assert_operator within, :<=, limit, "HASHMERE_SEED=#{seed}"
      end
    end
  end

  def test_a_clock_that_is_set_back
    window = Hashmere::SlidingWindow.new(@store, limit: 3, period: 6000, clock: @clock, prefix: "window:")
    assert bucket.take("a", 3).allowed? && window.take("a", 3).allowed?
    wait(-100_000_000)
    assert_equal [false, 0, 500, 1500], bucket.take("a").to_a
    assert_includes 6000..6100, window.take("a").retry_after
    wait 6100
    assert bucket.take("a", 3).allowed? && window.take("a", 3).allowed?
  end

  def test_what_is_refused
    [0, -1, Float::NAN, 1e7].each { |rate| assert_match(/rate has to be/, refused { bucket(rate: rate) }) }
    [0, -1, 1.5].each { |burst| assert_match(/burst has to be/, refused { bucket(burst: burst) }) }
    [0, Float::INFINITY, Float::NAN].each do |period|
      assert_match(/period has to be/, refused { Hashmere::SlidingWindow.new(@store, limit: 1, period: period) })
    end
    assert_match(/limit has to be/, refused { Hashmere::SlidingWindow.new(@store, limit: 0, period: 1) })
    [0, -1, 4, 1.0].each { |cost| assert_match(/a cost of #{cost} is never allowed: .* from 1 to 3/, refused { bucket.take("a", cost) }) }
    assert_empty @store
    ["", "x", "-1", "1_0", "1 2", " 1", "1\n"].each do |value|
      @store["limit:a"] = value
      assert_match(/limit:a.* is not that of a Hashmere::TokenBucket: choose another prefix/, refused { bucket.take("a") })
      assert_equal value, @store["limit:a"]
    end
    @store["limit:a"] = "7"
    assert_match(/SlidingWindow/, refused { Hashmere::SlidingWindow.new(@store, limit: 1, period: 1).peek("a") })
  end

  def refused(&block) = assert_raises(ArgumentError, &block).message

  def test_processes_share_them
    limits = [Hashmere::TokenBucket.new(@store, rate: 1e-6, burst: 500),
              Hashmere::SlidingWindow.new(@store, limit: 300, period: 1e6, prefix: "window:")]
    Array.new(3) do |i|
      fork do
        counts = limits.map { |limit| Array.new(400) { limit.take("k") }.count(&:allowed?) }
        @store["counts:#{i}"] = counts.join(" ")
        exit!(0)
      end
    end.each { |pid| Process.wait(pid) }
    counts = Array.new(3) { |i| @store["counts:#{i}"].split.map(&:to_i) }
    assert_equal [500, 300], counts.transpose.map(&:sum)
  end
end
