# frozen_string_literal: true

# One of the programs of README.md.
require "hashmere"

SUMS = 2000
STEPS = 200
PATIENCE = 600
HASH = 7 # the same bytes with a hash are another key

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def wait_until(what)
  finish = now + PATIENCE
  until yield
    raise what if now > finish

    sleep 0.001
  end
end

def greeting(name) = (0..255).to_a.pack("C*") + name.b

def next_number(store)
  loop do
    seen = store.get_item("cas")
    return if store.cas("cas", (Integer(seen.value) + 1).to_s, version: seen.version)
  end
end

def read_of(store, peer)
  key = "from:#{peer}"
  wait_until("a value of another language never came") { store.key?(key) }
  record = store.get_item(key)
  raise "another language stored other bytes" unless record.value.b == greeting(peer)
  raise "another language stored other flags" unless record.flags == peer.size
  raise "another language stored another time to live" unless (2000..3600).cover?(store.ttl(key))

  named = store[Hashmere::HashedKey.new(key, HASH)]
  raise "another language's key with a hash is another one" unless named == peer

  id = Hashmere::EntryId.new(Integer(store["id:#{peer}"]))
  raise "another language's id is another key's" unless store[id] == peer && store.key_of(id) == key
end

def forever(store, me)
  (0..).each do |n|
    key = "noise:#{me}:#{n % 50}"
    store[key] = ("a".ord + n % 26).chr * (n % 700)
    store.delete(key) if (n % 7).zero?
    store.incr("noise:#{me}", initial: 1)
  end
end

def work(store, me, all)
  store.incr("arrived", initial: 1)
  wait_until("the others do not come") { Integer(store["arrived"]) >= all.size }

  SUMS.times do
    store.incr("sum", initial: 1)
    store.incr("sum:#{me}", initial: 1)
  end
  STEPS.times do
    next_number(store)
    store.update_with("log") { |old| "#{old}#{me};" }
  end
  named = Hashmere::HashedKey.new("from:#{me}", HASH)
  store[named] = me
  store["id:#{me}"] = store.id_of(named).to_i.to_s
  store.set("from:#{me}", greeting(me), flags: me.size, ttl: 3600)
  all.each { |peer| read_of(store, peer) }

  store.set("brief:#{me}", "x", ttl: 0.05)
  sleep 0.08
  raise "what had expired was there" if store.key?("brief:#{me}")

  store.dec_ref("refs")
end

path, me, all = ARGV
Hashmere.open(path) do |store|
  all == "forever" ? forever(store, me) : work(store, me, all.split(","))
end
