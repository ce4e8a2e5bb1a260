# frozen_string_literal: true

# A value read in place, and one written in place.
require "hashmere"

SIZE = 1 << 20

store = Hashmere.open("sample-view")
store["frame"] = "\x01" * SIZE

store.view("frame") do |view|
  puts "a view of #{view.size} bytes, #{view.zero_copy? ? "not copied" : "copied"}"
  store["frame"] = "\x02" * SIZE
  now = store.view("frame") { |newer| newer[0] }
  puts "overwritten; the view still begins with #{view[0]}, the store with #{now}"
end

store.reserve("squares", 8) do |room|
  8.times { |i| room[i] = i * i }
end
puts "written in place: #{store["squares"].bytes.join(" ")}"
store.remove
