# frozen_string_literal: true

require_relative "helper"

# Every call that takes a key takes every kind of key, and what it does for a key whose entry is gone.
class TestKeys < StoreTest
  # What each call returns, by whatever names the key. The value is "5" before each.
  CALLS = {
    get: ->(s, k) { s[k] },
    fetch: ->(s, k) { s.fetch(k) },
    item: ->(s, k) { s.get_item(k).then { |item| [item.value, item.flags, item.uid == s.uid_of(k)] } },
    key?: ->(s, k) { s.key?(k) },
    value_len: ->(s, k) { s.value_len(k) },
    version: ->(s, k) { s.version(k) == s.get_item(k).version },
    flags: ->(s, k) { s.flags(k) },
    ttl: ->(s, k) { s.ttl(k) },
    expires_at: ->(s, k) { s.expires_at(k) },
    view: ->(s, k) { s.view(k) { |view| [view.to_s, view.uid == s.uid_of(k)] } },
    set: ->(s, k) { [s.set(k, "6", flags: 2).is_a?(Integer), s[k], s.flags(k)] },
    store: ->(s, k) { [s.store(k, "6"), s[k]] },
    aset: ->(s, k) { [s[k] = "6", s[k]] },
    add: ->(s, k) { s.add(k, "6") },
    replace: ->(s, k) { [s.replace(k, "6").is_a?(Integer), s[k]] },
    append: ->(s, k) { [s.append(k, "6").is_a?(Integer), s[k]] },
    prepend: ->(s, k) { [s.prepend(k, "6").is_a?(Integer), s[k]] },
    cas_version: ->(s, k) { [s.cas(k, "6", version: s.version(k)).is_a?(Integer), s[k], s.cas(k, "7", version: 1)] },
    cas_expected: ->(s, k) { [s.cas(k, "6", expected: "5").is_a?(Integer), s[k], s.cas(k, "7", expected: "5")] },
    delete: ->(s, k) { [s.delete(k), s.key?(k)] },
    delete?: ->(s, k) { [s.delete?(k, expected: "4"), s.delete?(k, version: s.version(k)), s.key?(k)] },
    update_with: ->(s, k) { [s.update_with(k) { |old| "#{old}!" }, s[k]] },
    remove_in_update: ->(s, k) { [s.update_with(k) { Hashmere::REMOVE }, s.key?(k)] },
    incr: ->(s, k) { [s.incr(k, 2), s[k]] },
    decr: ->(s, k) { [s.decr(k, 2), s[k]] },
    up_to_date: ->(s, k) { [s.up_to_date?(k, s.version(k)), s.up_to_date?(k, 1)] },
    incr_signed: ->(s, k) { [s.incr_signed(k, -9), s[k]] },
    incr_float: ->(s, k) { [s.incr_float(k, 0.5), s[k]] },
    refs: ->(s, k) { [s.inc_ref(k), s.dec_ref(k)] },
    touch: ->(s, k) { [s.touch(k, ttl: 9000), s.ttl(k) > 1000] },
    get_and_touch: ->(s, k) { [s.get_and_touch(k, ttl: 9000).value, s.ttl(k) > 1000] },
    reserve: ->(s, k) { [s.reserve(k, 1) { |room| room[0] = 54 }.nil?, s[k]] },
    uid_of: ->(s, k) { s.uid_of(k).instance_of?(Hashmere::Uid) },
    id_of: ->(s, k) { s.id_of(k).instance_of?(Hashmere::EntryId) },
    key_of: ->(s, k) { s.key_of(k) },
  }.freeze

  # What a call that creates nothing returns for an entry that is gone.
  NOTHING = {
    get: nil, key?: false, value_len: nil, version: nil, flags: nil, ttl: nil, expires_at: nil, get_item: nil, uid_of: nil, id_of: nil,
    key_of: nil, view: nil, delete: nil, delete?: false, inc_ref: Hashmere::Stale, dec_ref: nil, touch: false, get_and_touch: nil
  }.freeze

  def kinds
    {
      string: -> { "a" },
      symbol: -> { :a },
      uid: -> { @store.uid_of("a") },
      id: -> { @store.id_of("a") },
    }
  end

  def test_every_call_takes_every_kind_of_key
    CALLS.each do |name, call|
      wanted = nil
      kinds.each do |kind, key|
        @store.clear
        @store.set("a", "5", flags: 1)
        done = call.call(@store, key.call)
        wanted = done if kind == :string
        wanted.nil? ? assert_nil(done, "#{name} by #{kind}") : assert_equal(wanted, done, "#{name} by #{kind}")
      end
    end
  end

  def test_a_key_with_a_hash_is_another_key
    key, other = Hashmere::HashedKey.new("a", 7), Hashmere::HashedKey.new("a", 8)
    @store["a"] = "plain"
    CALLS.each do |name, call|
      @store.clear
      @store["a"] = "plain"
      @store.set("b", "5", flags: 1)
      wanted = call.call(@store, "b")
      @store.set(key, "5", flags: 1)
      done = call.call(@store, key)
      wanted = "a" if name == :key_of
      wanted.nil? ? assert_nil(done, name) : assert_equal(wanted, done, name)
      assert_equal ["plain", nil], [@store["a"], @store[other]]
    end
    assert_equal 5, @store.incr(other, 3, initial: 5)
    assert_equal %w[a a], @store.to_a.map(&:first).sort.first(2)
  end

  def test_an_entry_that_is_gone
    @store["a"] = "5"
    uid, id = @store.uid_of("a"), @store.id_of("a")
    @store.delete("a")
    [uid, id].each do |gone|
      NOTHING.each do |call, wanted|
        next assert_raises(wanted) { @store.public_send(call, gone) } if wanted.is_a?(Class)

        done = call == :get ? @store[gone] : @store.public_send(call, gone)
        wanted.nil? ? assert_nil(done, call) : assert_equal(wanted, done, call)
      end
      assert_nil @store.append(gone, "x")
      assert_nil @store.prepend(gone, "x")
      assert_nil @store.replace(gone, "x")
      assert_nil @store.incr(gone)
      assert_nil @store.cas(gone, "x", expected: "5")
      raises { @store[gone] = "x" }
      raises { @store.set(gone, "x") }
      raises { @store.add(gone, "x") }
      raises { @store.incr(gone, initial: 1) }
      raises { @store.update_with(gone) { flunk "there is nothing to show" } }
      raises { @store.reserve(gone, 1) { nil } }
      assert_empty @store
    end
  end

  # Values that are read again with more room, and copied without the GVL.
  def test_long_values_by_a_key_with_a_hash
    key = Hashmere::HashedKey.new("a", 7)
    [600, 200_000].each do |size|
      @store["a"] = "plain" * size
      @store[key] = "h" * size
      assert_equal ["h" * size, "plain" * size], [@store[key], @store["a"]]
      assert_equal size, @store.get_item(key).value.size
      assert_equal "h" * size, @store.delete(key)
      assert_equal [nil, "plain" * size], [@store[key], @store["a"]]
    end
  end

  def test_lists_take_bytes
    @store["a"] = "5"
    [@store.uid_of("a"), @store.id_of("a"), Hashmere::HashedKey.new("a", 7), 7].each do |key|
      [-> { @store.values_at(key) }, -> { @store.set_many({ key => "x" }) }, -> { @store.delete_many([key]) }].each do |call|
        assert_match(/of several has to be a String or a Symbol, not #{key.class}/, assert_raises(TypeError, &call).message)
      end
    end
    assert_equal "5", @store["a"]
  end

  def test_values
    uid = Hashmere::Uid.new(17)
    assert_equal [17, "#<Hashmere::Uid 17>"], [uid.to_i, uid.inspect]
    assert_equal uid, Hashmere::Uid.new(17)
    assert_equal({ uid => 1 }, { Hashmere::Uid.new(17) => 1 })
    refute_equal uid, Hashmere::EntryId.new(17)
    refute_equal uid, 17
    assert_predicate uid, :frozen?
    key = Hashmere::HashedKey.new(+"a", 7)
    assert_equal ["a", 7], [key.key, key.key_hash]
    assert_equal [key, { key => 1 }], [Hashmere::HashedKey.new(:a, 7), { Hashmere::HashedKey.new("a", 7) => 1 }]
    refute_equal key, Hashmere::HashedKey.new("a", 8)
    assert key.frozen? && key.key.frozen?
  end

  private

  def raises(&block) = assert_raises(Hashmere::Stale, &block)
end
