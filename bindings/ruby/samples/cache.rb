# frozen_string_literal: true

# A cache: values with a time to live, in a file that never grows beyond its size.
require "hashmere"

MINUTE = 60
PAGES = 20_000
MAX_BYTES = 4 << 20

def yes(it_is) = it_is ? "yes" : "no"

cache = Hashmere.open("sample-cache", cache: true, max_bytes: MAX_BYTES)
cache.clear

cache.set("session:1", "Ada", ttl: MINUTE, flags: 7)
puts "session:1 lives for less than a minute: #{yes(cache.ttl("session:1").between?(0.001, MINUTE))}"

cache.set("session:2", "Grace", ttl: 0.02)
sleep 0.04
puts "session:2 is gone after its time: #{yes(!cache.key?("session:2"))}"

cache.touch("session:1", ttl: 10 * MINUTE)
longer = yes(cache.ttl("session:1") > MINUTE)
puts "session:1 was touched, flags #{cache.flags("session:1")}, lives for more than a minute: #{longer}"

page = "." * 1000
1.upto(PAGES) { |number| cache["page:#{number}"] = page }
puts "after #{PAGES} pages the file has at most 4 MiB: #{yes(cache.stats[:bytes_file] <= MAX_BYTES)}"
gone = cache.key?("page:#{PAGES}") && !cache.key?("page:1")
puts "the last page is there, the first made room: #{yes(gone)}"

cache.remove
