# frozen_string_literal: true

# The first steps: open, set, get, scan, delete, and what an error looks like.
require "hashmere"

store = Hashmere.open("sample-basic")
store.clear

store["user:7"] = "Ada"
puts "user:7 is #{store["user:7"]}"
puts "user:8 is not there" unless store["user:8"]

store.replace("user:7", "Grace")
puts "now user:7 is #{store["user:7"]}, #{store.value_len("user:7")} bytes"

store.add("user:9", "Edsger")
puts "keys: #{store.keys(prefix: "user:").sort.join(" ")}" # a scan has no order

store.delete("user:9")
puts "deleted user:9, #{store.size} key is left"
store.close
Hashmere.remove("sample-basic")

begin
  Hashmere.open("sample-basic", create: false)
rescue Hashmere::Error => error
  puts "error #{error.code} (#{error.class.name.split("::").last})"
end
