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
end
