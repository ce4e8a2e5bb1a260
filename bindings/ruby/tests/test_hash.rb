# frozen_string_literal: true

require_relative "helper"

# The store is used as a Hash of Strings is, and answers as one.
class TestHash < StoreTest
  def test_it_answers_as_a_hash_does
    seed = (ENV["HASHMERE_SEED"] || Random.new_seed).to_i & 0xffffffff
    random = Random.new(seed)
    hash = {}
    2000.times do |step|
      key = "key #{random.rand(60)}"
      value = random.bytes(random.rand(40)).force_encoding("UTF-8")
      value = "v" * random.rand(300..900) if step % 50 == 0
      case random.rand(6)
      when 0, 1, 2 then assert_equal(hash[key] = value, @store[key] = value)
      when 3 then hash[key].nil? ? assert_nil(@store.delete(key)) : assert_equal(hash.delete(key), @store.delete(key), "seed #{seed}")
      when 4 then assert_equal hash.fetch(key, "no"), @store.fetch(key, "no"), "seed #{seed}"
      else assert_equal hash.key?(key), @store.key?(key), "seed #{seed}"
      end
    end
    assert_equal hash, @store.to_h, "seed #{seed}"
    assert_equal hash.keys.sort, @store.keys.sort
    assert_equal hash.values.sort, @store.values.sort
    assert_equal hash.size, @store.size
    assert_empty @store.check
  end

  def test_fetch
    @store["a"] = "1"
    assert_equal "1", @store.fetch("a")
    assert_equal 7, @store.fetch("b", 7)
    assert_nil @store.fetch("b", nil)
    assert_equal "b!", @store.fetch("b") { |key| "#{key}!" }
    error = assert_raises(KeyError) { @store.fetch("b") }
    assert_equal "b", error.key
    assert_same @store, error.receiver
  end

  def test_values_at_and_many
    assert_equal 2, @store.set_many({ "a" => "1", b: "2" })
    assert_equal ["2", nil, "1", ""], @store.merge!("" => "").values_at("b", "c", :a, "")
    assert_equal({ "a" => "1" }, @store.slice("a", "c"))
    many = (0...600).to_h { |n| ["many #{n}", "#{n}" * (n % 50)] }
    @store.merge!(many)
    assert_equal many.values, @store.values_at(*many.keys)
    assert_equal 600, @store.delete_many(many.keys + ["absent"])
    assert_equal [], @store.values_at
  end

  def test_delete_returns_the_value_once
    @store["a"] = "1"
    assert_equal "1", @store.delete("a")
    assert_nil @store.delete("a")
    assert_equal "none", @store.delete("a") { "none" }
    @store["long"] = "x" * 300_000
    assert_equal 300_000, @store.delete("long").size
    assert_predicate @store, :empty?
  end

  def test_enumerable
    ("a".."e").each { |key| @store[key] = key.upcase }
    assert_equal %w[A B C D E], @store.map { |_, value| value }.sort
    assert_equal [%w[c C]], @store.select { |key, _| key == "c" }
    assert_equal 5, @store.each.size
    assert_equal 5, @store.count
    assert_equal %w[a A], @store.min
    assert_includes @store, "a"
    assert_equal({ "A" => "a" }, @store.to_h { |key, value| [value, key] }.slice("A"))
    assert_equal %w[a b c d e], @store.each_key.sort
    @store.delete_if { |key, _| key > "b" }
    assert_equal %w[a b], @store.keys.sort
    assert_same @store, @store.clear
    assert_equal [], @store.to_a
  end

  def test_scans
    50.times { |n| @store["user:#{n}"] = "" }
    @store["other"] = ""
    assert_equal 50, @store.keys(prefix: "user:").size
    assert_equal 10, @store.keys(glob: "user:?").size
    seen = []
    cursor = 0
    while cursor
      cursor = @store.scan(prefix: "user:", cursor: cursor, limit: 7) { |key, _| seen << key }
    end
    assert_equal 50, seen.uniq.size
    assert_equal 50, seen.size
    assert_equal "user:1", @store.each_key.lazy.select { |key| key == "user:1" }.first
    @store.each { |key, _| @store.delete(key) }
    assert_predicate @store, :empty?
  end

  def test_encodings
    @store["é"] = "naïve"
    assert_equal "naïve", @store["é"]
    assert_equal Encoding::UTF_8, @store["é"].encoding
    assert_equal Encoding::UTF_8, @store.keys.first.encoding
    @store["bytes"] = "\xff\x00\xfe".b
    assert_equal "\xff\x00\xfe".b, @store["bytes"].b
    refute_predicate @store["bytes"], :frozen?
    @store["wide"] = "ab".encode("UTF-16LE")
    Hashmere.open(@path, encoding: "BINARY") { |store| assert_equal Encoding::BINARY, store["é".b].encoding }
    Hashmere.open(@path, encoding: Encoding::UTF_16LE) { |store| assert_equal "ab".encode("UTF-16LE"), store["wide"] }
    Hashmere.open(@path, encoding: "Windows-1252") { |store| assert_equal Encoding::Windows_1252, store["wide"].encoding }
    @store["nul\0key"] = "\0"
    assert_equal "\0", @store["nul\0key"]
  end

  def test_lengths_around_the_ways_to_copy
    [0, 1, 23, 24, 511, 512, 513, 4096, (128 << 10) - 1, 128 << 10, 1 << 20].each do |len|
      value = Random.bytes(len)
      @store["v"] = value
      assert_equal value, @store["v"].b
      assert_equal value, @store.get_item("v").value.b
      assert_equal value, @store.values_at("v").first.b
      assert_equal len, @store.value_len("v")
    end
  end
end
