# frozen_string_literal: true

# What happens to the keys of a store, followed by a consumer that stops and resumes.
require "hashmere"

CHANGES = 500

def show(event)
  case event.kind
  when :reset then puts "reset: #{event.reason}"
  when :synced, :clear then puts event.kind
  else
    puts "in a transaction, #{event.transaction.len} of it:" if event.transaction&.index&.zero?
    puts "#{event.operation} #{event.key}#{" = #{event.value}" if event.value}"
  end
end

# Shows what there is.
def drain(feed)
  while (event = feed.next(0))
    show(event)
  end
end

Hashmere.remove("sample-feed")
Hashmere.open("sample-feed", feed: 1 << 20, feed_values: true) do |store|
  store["alice"] = "100"
  token = store.feed(:start, values: true) do |feed| # every key first
    drain(feed)
    store["bob"] = "7"
    batch = Hashmere::WriteBatch.new
    batch.set("alice", "70")
    batch.set("bob", "37")
    store.write_batch(batch)
    store.delete("bob")
    drain(feed)
    feed.token # a consumer keeps it where its data are
  end
  store["carol"] = "5"
  store.clear
  puts "resumed"
  store.feed(token, values: true) do |feed|
    drain(feed)
    $stdout.flush
    pid = fork { CHANGES.times { store.incr("hits", initial: 1) } } # the child goes on with the open store
    feed.first(CHANGES).each.with_index(1) do |event, number| # waits for each
      abort "change #{number} is missing: #{event}" unless event.value == number.to_s
    end
    Process.wait2(pid)[1].success? or abort "the other process has failed"
  end
  puts "#{CHANGES} changes of another process, in order"
  store.remove
end
