# frozen_string_literal: true

require_relative "helper"

# What people of Hash, localmemcache and Dalli reach for.
class TestHabits < StoreTest
  def test_calls_of_a_hash
    @store.merge!("a" => "1", "b" => "2", "c" => "3")
    assert_equal "1", @store.dig("a")
    assert_nil @store.dig("x", "y")
    assert_raises(TypeError) { @store.dig("a", "b") }
    assert_equal({ "a" => "1" }, @store.except("b", :c))
    assert_equal %w[1 3], @store.fetch_values("a", :c)
    assert_raises(KeyError) { @store.fetch_values("a", "x") }
    assert_equal ["1", "no x"], @store.fetch_values("a", "x") { |key| "no #{key}" }
    assert @store.value?("2") && @store.has_value?("3")
    refute @store.value?("4")
    assert_equal "b", @store.key("2")
    assert_nil @store.key("4")
    assert_equal({ "a" => "1", "b" => "9", "c" => "3" }, @store.merge({ b: "9" }))
    assert_equal({ "a" => "1", "b" => "29", "c" => "3" }, @store.merge({ "b" => "9" }) { |_, one, other| one + other })
    assert_equal({ "a" => 1, "b" => 2, "c" => 3 }, @store.transform_values(&:to_i))
    assert_equal "2", @store["b"], "what returns a Hash changes nothing"
    assert_same @store, @store.transform_values! { |value| value * 2 }
    assert_equal({ "a" => "11", "b" => "22", "c" => "33" }, @store.to_h)
    assert_nil @store.reject! { false }
    assert_same @store, @store.reject! { |key, _| key == "a" }
    assert_nil @store.select! { true }
    assert_same @store, @store.select! { |_, value| value == "33" }
    assert_equal %w[c], @store.keys
    assert_same @store, @store.keep_if { true }
    assert_equal %w[c 33], @store.shift
    assert_nil @store.shift
    @store[Hashmere::HashedKey.new("hashed", 7)] = "x"
    assert_equal %w[hashed x], @store.shift
    assert_nil @store.shift
  end

  def test_each_of_several_threads_gets_other_pairs
    500.times { |n| @store[n.to_s] = "v" }
    shift_all = lambda do
      own = []
      while (pair = @store.shift)
        own << pair[0]
      end
      own
    end
    taken = Array.new(4) { Thread.new(&shift_all) }.flat_map(&:value)
    assert_equal (0...500).map(&:to_s).sort, taken.sort
  end

  def test_ttl_takes_what_ttl_returns
    @store.set("forever", "x", ttl: @store.ttl("absent"))
    assert_equal Float::INFINITY, @store.ttl("forever")
    @store.set("other", "x", ttl: @store.ttl("forever"))
    assert_equal Float::INFINITY, @store.ttl("other")
    @store.set("short", "x", ttl: 100)
    @store.touch("other", ttl: @store.ttl("short"))
    assert_in_delta 100, @store.ttl("other"), 60
  end

  def test_keys_and_values_of_any_kind
    assert_raises(TypeError) { @store[1] = "x" }
    store = Hashmere.open(@path, to_s: true)
    store[1] = 2
    store[nil] = nil
    store[:sym] = :value
    assert_equal({ "1" => "2", "nil" => "nil", "sym" => "value" }, @store.to_h)
    assert_equal ["2", "nil", nil], store.values_at(1, nil, 3)
    assert_equal 3, store.incr(1)
    assert store.key?(nil) && store.include?(1)
    assert_equal "3", store.fetch(1)
    assert_equal 2, store.set_many({ 5 => 6, 7 => 8 })
    assert_equal "6", store.delete(5)
    assert_equal 2, store.delete_many([7, nil])
    store.store(8, 9)
    assert_equal "9", store.get(8)
    assert store.set(8, 10, ttl: 50) && store.ttl(8) < 51
    store.close
  end

  def test_names_of_dalli
    @store.merge!("a" => "1", "b" => "2")
    assert_equal({ "a" => "1", "b" => "2" }, @store.get_multi("a", "x", "b"))
    assert_equal({ "a" => "1" }, @store.get_multi(["a"]))
    seen = []
    assert_nil(@store.get_multi("a") { |key, value| seen << [key, value] })
    assert_equal [%w[a 1]], seen
    assert_equal "1", @store.gat("a", 100)
    assert_operator @store.ttl("a"), :<=, 100
    assert_equal "1", @store.gat("a")
    assert_equal Float::INFINITY, @store.ttl("a")
    assert_nil @store.gat("x", 1)
  end
end

# Regular expressions, parts, a scan from a key, a visitor of all keys; dump and load; a store by its name.
class TestScanning < StoreTest
  def setup
    super
    @store.set_many((0...1000).to_h { |n| ["k#{n}", n.to_s] })
  end

  def test_regular_expressions
    assert_equal 9, @store.keys(regex: "^k[0-9]5$").size
    assert_equal 9, @store.keys(regex: /^K[0-9]5$/i).size
    assert_equal 100, @store.each(regex: /5 $ # ends in it/x).count
    assert_equal 9, @store.parallel_scan(regex: /\Ak\d5\z/).count
  end

  def test_parts_share_the_keys
    seen = (0...4).flat_map { |part| @store.keys(part: [part, 4]) }
    assert_equal [1000, 1000], [seen.size, seen.uniq.size]
  end

  def test_a_scan_begins_at_a_key
    order = @store.keys
    rest = []
    @store.scan(cursor: @store.cursor_of(order[400])) { |key, _| rest << key }
    assert_equal order[400..], rest
    assert_nil @store.cursor_of("absent")
  end

  def test_a_visitor_of_all_keys
    assert_equal 111, @store.update_each(prefix: "k9") { |_, value| "#{value}!" }
    assert_equal "99!", @store["k99"]
    assert_equal 0, @store.update_each { nil }
    assert_equal 1, @store.update_each { |key, _| Hashmere::REMOVE if key == "k1" }
    refute @store.key?("k1")
    hashed = Hashmere::HashedKey.new("hashed", 7)
    @store[hashed] = "x"
    assert_equal 1, @store.update_each(prefix: "hashed") { "y" }
    assert_equal "y", @store[hashed]
    calls = 0
    error = assert_raises(RuntimeError) { @store.update_each { (calls += 1) == 3 ? raise("enough") : nil } }
    assert_equal ["enough", 3], [error.message, calls]
  end

  def test_dump_and_load
    Dir.mktmpdir do |folder|
      file = "#{folder}/all.jsonl"
      assert_equal 111, @store.dump(file, prefix: "k1")
      copy = Hashmere.open("copy-#{Process.pid}", remove_on_last_close: true)
      assert_equal 111, copy.load(file)
      assert_equal "123", copy["k123"]
      assert_equal 111, copy.dump("#{folder}/text", format: :tsv)
      File.write("#{folder}/bad", "one\t1\ntwo\n")
      error = assert_raises(Hashmere::Malformed) { copy.load("#{folder}/bad") }
      assert_match(/line 2: no tab.*the first line is loaded/, error.message)
      copy.close
    end
  end

  def test_a_store_by_its_name
    Dir.mktmpdir do |folder|
      file = "#{folder}/all.tsv"
      assert_empty Hashmere.check(@path)
      assert_equal 1000, Hashmere.stats(@path)[:items]
      assert_equal 200, Hashmere.dump(@path, file, regex: /[05]$/)
      assert_equal 200, Hashmere.load("#{folder}/copy.mere", file, cache: true, max_bytes: 8 << 20)
      assert_equal 200, Hashmere.backup("#{folder}/copy.mere", "#{folder}/saved.mere")[:items]
      assert_raises(Hashmere::BackupExists) { Hashmere.backup("#{folder}/copy.mere", "#{folder}/saved.mere") }
      none = "#{folder}/none.mere"
      [-> { Hashmere.check(none) }, -> { Hashmere.stats(none) }, -> { Hashmere.dump(none, file) }, -> { Hashmere.backup(none, file) }]
        .each { |call| assert_raises(Hashmere::NotFound, &call) }
      assert_raises(Errno::ENOENT) { Hashmere.load(none, "#{folder}/absent") }
      refute_path_exists none
    end
  end
end
