# frozen_string_literal: true

require_relative "helper"

# What is wrong raises Ruby's usual exception with a text that helps, and never crashes.
class TestBadInput < StoreTest
  def raises(kind, text = nil, &block)
    error = assert_raises(kind, &block)
    assert_match text, error.message if text
  end

  def test_wrong_types
    [nil, 1, 1.5, [], {}, Object.new].each do |wrong|
      raises(TypeError, /String, a Symbol.*Uid.*not #{wrong.class}/) { @store[wrong] }
      raises(TypeError, /String/) { @store[wrong] = "x" }
      raises(TypeError, /String/) { @store["x"] = wrong }
      raises(TypeError) { @store.key?(wrong) }
      raises(TypeError) { @store.delete(wrong) }
      raises(TypeError) { @store.values_at("x", wrong) }
      raises(TypeError) { @store.set_many({ "x" => wrong }) }
      raises(TypeError) { @store.add("x", wrong) }
      raises(TypeError) { @store.incr(wrong) }
      raises(TypeError) { @store.view(wrong) }
      raises(TypeError) { @store.uid_of(wrong) }
      raises(TypeError) { @store.reserve(wrong, 1) { nil } }
    end
    raises(TypeError, /String/) { @store["x"] = :symbol }
    raises(TypeError) { @store.update_with("x") { 7 } }
    raises(TypeError) { @store.scan(prefix: 7) { nil } }
    raises(TypeError) { Hashmere.open(nil) }
    raises(TypeError) { Hashmere.open(7) }
    raises(TypeError) { @store.incr("x", "1") }
    raises(TypeError) { @store.incr("x", 1.5) }
    raises(NoMethodError) { @store.set_many(7) }
    assert_predicate @store, :empty?
  end

  def test_numbers
    raises(RangeError, /flags.*negative/) { @store.set("x", "", flags: -1) }
    raises(RangeError, /2\*\*32/) { @store.set("x", "", flags: 2**32) }
    raises(RangeError, /2\*\*64/) { @store.incr("x", 2**64) }
    raises(RangeError) { @store.incr("x", -2**70) }
    raises(RangeError) { @store.incr("x", initial: -1) }
    raises(RangeError) { @store.cas("x", "", version: -(2**65)) }
    raises(RangeError, /UID.*negative/) { Hashmere::Uid.new(-1) }
    raises(RangeError, /UID.*2\*\*32/) { Hashmere::Uid.new(2**32) }
    raises(RangeError, /entry id.*2\*\*64/) { Hashmere::EntryId.new(2**64) }
    raises(RangeError, /hash.*negative/) { Hashmere::HashedKey.new("a", -1) }
    raises(TypeError, /hash.*Integer/) { Hashmere::HashedKey.new("a", "7") }
    raises(TypeError, /String or a Symbol.*Integer/) { Hashmere::HashedKey.new(7, 7) }
    raises(TypeError, /UID.*Integer/) { Hashmere::Uid.new("7") }
    [Hashmere::Uid.new(2**32 - 1), Hashmere::EntryId.new(2**64 - 1)].each do |none|
      assert_nil @store[none]
      raises(Hashmere::Stale) { @store[none] = "x" }
    end
    [Hashmere::Uid, Hashmere::EntryId, Hashmere::HashedKey].each { |kind| raises(TypeError) { @store[kind.allocate] } }
    raises(RangeError) { @store.scan(cursor: -1) { nil } }
    raises(Hashmere::BadCursor) { @store.scan(cursor: 2**64 - 1) { nil } }
    raises(ArgumentError) { @store.scan(limit: 0) { nil } }
    ["[a", "[z-a]", "a\\"].each do |glob|
      raises(Hashmere::BadPattern) { @store.keys(glob: glob) }
      raises(Hashmere::BadPattern) { @store.scan(glob: glob) { nil } }
      raises(Hashmere::BadPattern) { @store.parallel_scan(glob: glob) { nil } }
    end
    ["a(", "(a)\\1", /(?=a)/].each { |regex| raises(Hashmere::BadPattern, /the pattern/) { @store.keys(regex: regex) } }
    [[4, 4], [0, 0], [0, 65_537]].each { |part| raises(Hashmere::BadPart, /no part/) { @store.keys(part: part) } }
    raises(ArgumentError, /such as \[0, 4\]/) { @store.keys(part: 4) }
    raises(ArgumentError, /unknown keyword/) { @store.keys(prefxi: "a") }
    raises(ArgumentError, /:tsv or :jsonl/) { @store.dump("x", format: :xml) }
    raises(Hashmere::Io, /cannot write/) { @store.dump("/nowhere/at/all") }
    raises(Hashmere::Io, /cannot open/) { @store.load("/nowhere/at/all") }
    raises(ArgumentError, /block/) { @store.update_each }
    raises(RangeError) { @store.reserve("x", -1) { nil } }
    raises(Hashmere::TooLarge) { @store.reserve("x", 2**40) { nil } }
    raises(RangeError) { Hashmere.open("y", max_bytes: -1) }
    raises(Hashmere::BadOption) { Hashmere.open("y", segment_bytes: 5) }
    raises(Hashmere::Error) { Hashmere.open("y", cache: true) }
  end

  def test_times
    raises(ArgumentError, /negative/) { @store.set("x", "", ttl: -1) }
    raises(ArgumentError, /finite/) { @store.set("x", "", ttl: Float::NAN) }
    raises(ArgumentError, /finite/) { @store.set("x", "", ttl: -Float::INFINITY) }
    raises(RangeError, /too large/) { @store.set("x", "", ttl: 2**70) }
    raises(TypeError, /number/) { @store.set("x", "", ttl: "5") }
    raises(TypeError, /number/) { @store.set("x", "", ttl: Object.new) }
    raises(ArgumentError, /not both/) { @store.set("x", "", ttl: 1, expires_at: Time.now) }
    raises(ArgumentError, /negative/) { @store.touch("x", ttl: -0.5) }
    @store.set("past", "", expires_at: Time.at(1))
    refute @store.key?("past")
    assert_predicate @store.keys, :empty?
  end

  def test_names
    raises(ArgumentError, /null/) { Hashmere.open("a\0b") }
    raises(Hashmere::BadName) { Hashmere.open("") }
    raises(Hashmere::NotFound) { Hashmere.open("nowhere", create: false) }
    raises(Hashmere::AlreadyExists) { Hashmere.open(@path, create_new: true) }
    raises(Hashmere::Error) { Hashmere.open("/proc/version") }
    raises(ArgumentError) { Hashmere.open(@path, no_such_option: 1) }
    raises(ArgumentError) { Hashmere.open(@path, encoding: "no-such") }
    refute Hashmere.remove("nowhere")
    assert_match(/nowhere/, Hashmere.path_of("nowhere"))
  end

  def test_closed
    scan = @store.send(:_scan, [nil, nil, nil, 0, 0], 0, 0)
    @store["a"] = "1"
    view = @store.view("a")
    @store.close
    @store.close
    assert_predicate @store, :closed?
    assert_match(/closed/, @store.inspect)
    %i[size clear stats check compact sync clients random path keys to_a].each do |name|
      raises(Hashmere::Closed, /closed/) { @store.public_send(name) }
    end
    raises(Hashmere::Closed) { @store["a"] }
    raises(Hashmere::Closed) { @store["a"] = "1" }
    raises(Hashmere::Closed) { @store.values_at("a") }
    raises(Hashmere::Closed) { @store.update_with("a") { "2" } }
    raises(Hashmere::Closed) { @store.incr("a") }
    assert_equal 101, assert_raises(Hashmere::Closed) { @store.delete("a") }.code
    assert_equal "1", view.to_s
    assert_equal %w[a 1], scan.next
    scan.close
    raises(Hashmere::Closed) { scan.next }
    view.release
  end

  def test_never_opened
    store = Hashmere::Store.allocate
    raises(Hashmere::Closed) { store["a"] }
    assert_predicate store, :closed?
    assert_nil store.close
    raises(ArgumentError, /open already/) { @store.send(:initialize, @path) }
    raises(TypeError, /no dup or clone: open it again/) { @store.dup }
    raises(TypeError, /no dup or clone/) { @store.clone }
    assert_equal @store.coded.dup.size, @store.size
    raises(TypeError) { Marshal.dump(@store) }
    raises(TypeError) { Hashmere::View.allocate }
  end

  # to_str runs anything, even a close.
  def test_conversions_with_side_effects
    store = Hashmere.open(@path)
    closing = Object.new
    closing.define_singleton_method(:to_str) { store.close && nil || "a" }
    raises(Hashmere::Error) { store["b"] = closing }
    store = Hashmere.open(@path)
    raises(Hashmere::Error) { store[closing] }
  end

  def test_errors_have_the_codes_of_the_library
    codes = Hashmere.constants.map { |name| Hashmere.const_get(name) }
                    .select { |it| it.is_a?(Class) && it < Hashmere::Error }.to_h { |it| [it.name, it::CODE] }
    assert_equal [1, 31, 32, 101], codes.values_at("Hashmere::NotFound", "Hashmere::Full", "Hashmere::Busy", "Hashmere::Closed")
    header = ENV.fetch("HASHMERE_HEADER", nil) or skip "without HASHMERE_HEADER"
    headers = ["", "_queue", "_log", "_feed", "_dump"].map { |part| File.read(header.sub(/\.h$/, "#{part}.h")) }
    wanted = headers.join.scan(/^\s*HM_E_\w+ = (\d+)/).flatten.map(&:to_i)
    assert_equal wanted.sort, codes.values.sort
  end

  def test_full
    store = Hashmere.open("#{@path}-full.mere", max_bytes: 4 << 20, cache: false)
    error = assert_raises(Hashmere::Full) { 4000.times { |n| store["k#{n}"] = "x" * 2000 } }
    assert_equal 31, error.code
    assert_equal 2000, store["k0"].size
    store.remove
  end
end
