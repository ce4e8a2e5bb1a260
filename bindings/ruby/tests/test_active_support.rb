# frozen_string_literal: true

require_relative "helper"
require "active_support"
require "active_support/core_ext/numeric/time"
require "active_support/cache/hashmere_store"
require "logger"
require "stringio"

# What every cache store of ActiveSupport does.
class TestActiveSupport < Minitest::Test
  def setup
    @name = "cache-#{Process.pid}-#{SecureRandom.hex(4)}"
    @cache = ActiveSupport::Cache.lookup_store(:hashmere_store, @name, { max_bytes: 16 << 20, namespace: "app" })
  end

  def teardown = @cache.store.remove

  def test_read_write_fetch
    assert @cache.write("a", { n: [1, nil] })
    assert_equal({ n: [1, nil] }, @cache.read("a"))
    assert_nil @cache.read("absent")
    assert_equal "made", @cache.fetch("b") { "made" }
    assert_equal "made", @cache.fetch("b") { flunk }
    assert_equal "again", @cache.fetch("b", force: true) { "again" }
    assert @cache.write("nil", nil)
    assert_nil @cache.fetch("nil") { flunk }
    @cache.fetch("skip", skip_nil: true) { nil }
    refute @cache.exist?("skip")
    assert @cache.exist?("b")
    assert @cache.delete("b")
    refute @cache.delete("b")
    long = "x" * 100_000
    @cache.write("long" * 200, long)
    assert_equal long, @cache.read("long" * 200)
    assert_equal "é", @cache.fetch("ключ") { "é" }
    assert_equal "é", @cache.read("ключ")
    refute @cache.write("a", 2, unless_exist: true)
    assert_equal "v", @cache.fetch("ns", namespace: "other") { "v" }
    assert_nil @cache.read("ns")
  end

  def test_multi
    @cache.write_multi({ "a" => 1, "b" => 2 }, expires_in: 60)
    assert_equal({ "a" => 1, "b" => 2 }, @cache.read_multi("a", "b", "c"))
    assert_equal({ "a" => 1, "c" => "cc" }, @cache.fetch_multi("a", "c") { |name| name * 2 })
    assert_equal "cc", @cache.read("c")
    assert_equal 2, @cache.delete_multi(%w[a b absent])
  end

  def test_expires_in
    value, seconds = in_time(0.05) { |time| @cache.write("a", 1, expires_in: time) && @cache.read("a") }
    assert_equal 1, value
    sleep seconds + 0.03
    assert_nil @cache.read("a")
    assert_nil @cache.store.get_item("app:a")
    @cache.write("b", 1, expires_in: 1.hour)
    assert_in_delta 3600, @cache.store.ttl("app:b"), 60
  end

  # While one computes what has expired, the others get the old value.
  def test_race_condition_ttl
    options = { expires_in: 0.05, race_condition_ttl: 1000 }
    @cache.write("a", "old", **options)
    sleep 0.08
    result = @cache.fetch("a", expires_in: 1000, race_condition_ttl: 1000) do
      assert_equal "old", @cache.read("a")
      "new"
    end
    assert_equal "new", result
    assert_equal "new", @cache.read("a")
    @cache.write("b", "old", **options)
    sleep 0.08
    assert_raises(RuntimeError) { @cache.fetch("b", **options) { raise "no" } }
    assert_equal "old", @cache.read("b")
  end

  def test_increment
    @cache.write("n", 1, raw: true)
    assert_equal "1", @cache.read("n", raw: true)
    assert_equal 2, @cache.increment("n")
    assert_equal 12, @cache.increment("n", 10)
    assert_equal 11, @cache.decrement("n")
    assert_nil @cache.decrement("fresh")
    assert_equal 5, @cache.increment("fresh", 5, expires_in: 60)
    assert_in_delta 60, @cache.store.ttl("app:fresh"), 50
    children = Array.new(3) { fork { 100.times { @cache.increment("shared") } && exit!(0) } }
    children.each { |child| Process.wait(child) }
    assert_equal "300", @cache.read("shared", raw: true)
  end

  # What is no raw number: entries with numbers are counted with, as in memory; the rest is left alone, as by memcached and Redis.
  def test_increment_of_an_entry
    @cache.write("n", 5, expires_in: 60)
    assert_equal 6, @cache.increment("n")
    assert_equal [6, 3], [@cache.read("n"), @cache.decrement("n", 3)]
    assert_equal 3, @cache.read("n")
    assert_in_delta 60, @cache.store.ttl("app:n"), 50
    @cache.write("text", "41")
    assert_equal [42, 42, 0], [@cache.increment("text"), @cache.read("text"), @cache.decrement("text", 100)]
    log = StringIO.new
    @cache.logger = Logger.new(log)
    [nil, "word", { n: 1 }, [5], true].each do |value|
      @cache.write("other", value)
      assert_nil @cache.increment("other")
      assert_equal [value], [@cache.read("other")]
    end
    @cache.write("raw", "word", raw: true)
    assert_nil @cache.decrement("raw")
    assert_equal "word", @cache.read("raw", raw: true)
    assert_equal 6, log.string.scan("NotANumber").size
    @cache.write("old", 5, expires_in: 0.02, race_condition_ttl: 1000)
    sleep 0.04
    assert_equal 1, @cache.increment("old")
    @cache.write("shared", 0)
    children = Array.new(3) { fork { 100.times { @cache.increment("shared") } && exit!(0) } }
    children.each { |child| Process.wait(child) }
    assert_equal 300, @cache.read("shared")
  end

  # A configuration with another size.
  def test_another_maximum
    open = ->(bytes) { ActiveSupport::Cache.lookup_store(:hashmere_store, @name, { max_bytes: bytes, namespace: "app" }) }
    14.times { |n| assert @cache.write("page #{n}", Random.bytes(1 << 20), compress: false) }
    smaller = open.(5 << 20)
    assert_equal 5 << 20, @cache.stats[:bytes_max]
    assert_operator @cache.stats[:bytes_allocated], :<=, 5 << 20
    assert @cache.write("new", Random.bytes(1 << 20), compress: false)
    assert_equal 1 << 20, smaller.read("new").bytesize
    larger = open.(16 << 20)
    200.times { |n| assert larger.write("short #{n}", Random.bytes(50_000), compress: false) }
    assert_equal 200, (0...200).count { |n| @cache.exist?("short #{n}") }
    [smaller, larger].each { |cache| cache.store.close }
  end

  def test_delete_matched_and_clear
    %w[foo food bar].each { |name| @cache.write(name, 1) }
    @cache.write("foo", 1, namespace: "other")
    @cache.delete_matched(/^fo/)
    assert_equal [false, false, true], %w[foo food bar].map { |name| @cache.exist?(name) }
    assert @cache.exist?("foo", namespace: "other")
    @cache.cleanup
    @cache.clear
    refute @cache.exist?("bar")
  end

  def test_versions
    model = Struct.new(:cache_key, :cache_version)
    @cache.write(model.new("m", "1"), "first")
    assert_equal "first", @cache.read(model.new("m", "1"))
    assert_nil @cache.read(model.new("m", "2"))
  end

  def test_a_cache_that_is_full_or_cannot_take_it
    30.times { |n| assert @cache.write("page #{n}", Random.bytes(1 << 20), compress: false) }
    assert @cache.exist?("page 29")
    @cache.write("huge", "small")
    assert_equal false, @cache.write("huge", Random.bytes(64 << 20), compress: false, unless_exist: true)
    assert_equal "small", @cache.read("huge")
    assert_equal false, @cache.write("huge", Random.bytes(64 << 20), compress: false)
    assert_nil @cache.read("huge"), "the value of before is taken for the new one"
  end
end
