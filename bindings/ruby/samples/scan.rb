# frozen_string_literal: true

# A scan by a regular expression, one that processes share, one that begins at a key; every key changed; dump and load.
require "hashmere"
require "tmpdir"

PARTS = 4

Hashmere.open("sample-scan") do |store|
  store.clear
  store.set_many((0...1000).to_h { |n| ["user:#{n}", n.to_s] })

  puts "#{store.keys(regex: /^user:.*7$/).size} of #{store.size} keys end in 7"

  children = Array.new(PARTS) do |part|
    fork do # the child goes on with the open store
      store.each_key(prefix: "user:", part: [part, PARTS]) { store.incr("seen", initial: 1) }
    end
  end
  children.each { |child| Process.wait(child) }
  puts "#{PARTS} processes saw #{store.delete("seen")} keys"

  changed = store.update_each { |_, value| (2 * value.to_i).to_s }
  puts "#{changed} keys changed, user:7 is #{store["user:7"]} now"

  store.scan(cursor: store.cursor_of("user:7"), limit: 1) { |key, _| puts "a scan from user:7 begins with #{key}" }

  file = File.join(Dir.tmpdir, "sample-scan-#{Process.pid}.jsonl")
  dumped = store.dump(file)
  store.clear
  puts "#{dumped} records dumped, #{store.load(file)} loaded"
  File.delete(file)
  store.remove
end
