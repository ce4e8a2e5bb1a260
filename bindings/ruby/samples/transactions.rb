# frozen_string_literal: true

# Several processes move money between accounts; the sum never changes, not even for a moment.
require "hashmere"

PROCESSES = 4
STEPS = 500
ACCOUNTS = %w[alice bob carol].freeze

def transfer(store, from, to, amount)
  # The block may run several times: it has no effects but through `t`.
  store.transaction do |t|
    next false if t[from].to_i < amount

    t.decr(from, amount)
    t.incr(to, amount)
    true
  end
end

def total(store) = store.get_many_snapshot(*ACCOUNTS).compact.sum { |item| item.value.to_i }

Hashmere.open("sample-transactions") do |store|
  store.write_batch { |batch| ACCOUNTS.each { |account| batch.set(account, "100") } }
  children = Array.new(PROCESSES) do |who|
    fork do # the child goes on with the open store
      STEPS.times { |step| transfer(store, ACCOUNTS[(who + step) % 3], ACCOUNTS[(who + step + 1) % 3], 1 + step % 5) }
    end
  end
  100.times { raise "money is missing" unless total(store) == 300 }
  children.each { |child| Process.wait(child) }
  puts "the sum of all accounts is #{total(store)}"

  # If alice still has what was seen, close her account and note it; else read what she has.
  unchanged = Hashmere::Condition.value("alice", store["alice"])
  close = Hashmere::WriteBatch.new.delete("alice").set("closed", "alice")
  look = Hashmere::WriteBatch.new.get("alice")
  branch = store.write_batch_if([unchanged], close, look)
  puts "alice's account is closed: #{branch.succeeded}"
  store.remove
end
