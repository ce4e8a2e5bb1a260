# frozen_string_literal: true

require_relative "helper"

# Objects as values, by a coder that was chosen.
class TestCoded < StoreTest
  Point = Struct.new(:x, :y)

  def test_json
    users = @store.coded
    users["a"] = { "name" => "Ada", "born" => 1815, "tags" => [nil, true, 1.5] }
    assert_equal({ "name" => "Ada", "born" => 1815, "tags" => [nil, true, 1.5] }, users["a"])
    assert_equal '"x"', (users["s"] = "x") && @store["s"]
    assert_equal 2, users.update_with("n") { |old| (old || 1) + 1 }
    assert_equal 3, users.update_with("n") { |old| old + 1 }
    assert_equal [3, nil], users.values_at("n", "absent")
    assert_equal({ "s" => "x", "n" => 3 }, users.to_h.slice("s", "n"))
    users["null"] = nil
    assert_nil users.fetch("null")
    assert_raises(KeyError) { users.fetch("absent") }
    assert_equal 4, users.fetch("absent", 4)
    assert_equal "x", users.delete("s")
    # Nothing is created that the text asks for.
    @store["evil"] = '{"json_class":"String","raw":[1]}'
    assert_kind_of Hash, @store.coded(JSON)["evil"]
    assert_raises(JSON::ParserError) { @store["bad"] = "{" and users["bad"] }
  end

  def test_marshal_when_it_is_asked_for
    points = @store.coded(Marshal)
    points.set("p", Point.new(1, "é"), ttl: 60)
    assert_equal Point.new(1, "é"), points["p"]
    version = @store.version("p")
    assert points.cas("p", Point.new(2, nil), version: version)
    assert_nil points.cas("p", 0, version: version)
    assert_equal [Point.new(2, nil)], points.values
  end

  def test_any_object_with_dump_and_load
    reverse = Object.new
    def reverse.dump(text) = text.reverse
    def reverse.load(text) = text.reverse
    words = @store.coded(reverse)
    words.set_many({ "a" => "abc" })
    assert_equal %w[cba abc], [@store["a"], words["a"]]
    def reverse.dump(_text) = 7
    assert_raises(TypeError) { words["b"] = "x" }
    assert_raises(TypeError) { @store.coded(Object.new) }
  end

  def test_it_has_the_calls_of_a_store
    coded = @store.coded
    assert_equal [1], coded.store("a", [1])
    assert_same @store, coded.store
    assert_raises(ArgumentError) { coded.store("a") }
    coded["deep"] = { "x" => [1, { "y" => 2 }] }
    assert_equal 2, coded.dig("deep", "x", 1, "y")
    assert_nil coded.dig("none", "x")
    assert coded.has_key?("a") && coded.member?("a")
    assert_equal 5, coded.incr("n", initial: 5)
    assert_equal 7, coded.incr("n", 2)
    assert_equal 6, coded.decr("n")
    assert_equal 6, coded["n"]
    assert coded.touch("a", ttl: 100)
    assert_operator coded.ttl("a"), :<=, 100
    assert_equal [1], coded.get_and_touch("a")
    assert_equal({ "y" => 1 }, coded.once("o") { { "y" => 1 } })
    assert_equal({ "y" => 1 }, coded.once("o") { flunk })
    assert_includes %w[a deep n o], coded.random[0]
    assert_equal({ "a" => [1], "n" => 6 }, coded.slice("a", "n", "none"))
    assert_same coded, coded.merge!({ "a" => 2 }, { "b" => 3 })
    assert_equal({ "a" => 2, "b" => 3, "n" => 6 }, coded.to_h.slice("a", "b", "n"))
    refute coded.delete?("a", version: 1)
    assert coded.delete?("a", version: coded.version("a"))
    assert_equal 4, coded.delete_many(%w[b deep n o a])
    assert_nil coded.shift
    coded["last"] = nil
    assert_equal ["last", nil], coded.shift
    refute_predicate coded, :closed?
  end
end
