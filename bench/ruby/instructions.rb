# frozen_string_literal: true

# One loop of bench/instructions: instructions.rb OPERATION COUNT
require "hashmere"

KEYS = Array.new(10_000) { |number| number.to_s.freeze }
operation, count = ARGV[0], Integer(ARGV[1], 10)
rounds = count / KEYS.size
store, hash = Hashmere.open("instructions"), {}
KEYS.each { |key| store[key] = hash[key] = key }

# Every loop goes through its keys in the same way, so that the empty one can be taken off.
case operation
when "none" then rounds.times { KEYS.each { |key| key } }
when "store[key] = value" then rounds.times { KEYS.each { |key| store[key] = key } }
when "hash[key] = value" then rounds.times { KEYS.each { |key| hash[key] = key } }
when "store[key]" then rounds.times { KEYS.each { |key| store[key] } }
when "hash[key]" then rounds.times { KEYS.each { |key| hash[key] } }
else abort "no operation #{operation}"
end

KEYS.each { |key| abort "#{key} has another value" if store[key] != key || hash[key] != key }
store.close
Hashmere.remove("instructions")
