# frozen_string_literal: true

# Two processes pass one element to and fro; it carries a number that each of them checks and counts on.
require "hashmere"

PASSES = 20_000
PATIENCE = 30

# One element of eight bytes. Elements that are not in use are in the pool's free queue.
def open_pool(store)
  pool = Hashmere::Pool.open(store, "ball", elements: 1, bytes: 8)
  [pool, pool.queue("there"), pool.queue("back")]
end

# Takes the ball as long as it is in play, finds in it the number that must be next, and passes on the one behind that.
def play(pool, from, to, first)
  endpoint = pool.endpoint
  first.step(PASSES - 1, 2) do |number|
    ball = endpoint.pop(from, timeout: PATIENCE) or abort "the other player has gone"
    carried = ball.read.unpack1("Q<")
    abort "the ball carries #{carried} instead of #{number}" unless carried == number
    ball.write(0, [number + 1].pack("Q<")).push(number + 1 < PASSES ? to : pool.free)
  end
end

Hashmere.remove("sample-ping-pong")
Hashmere.open("sample-ping-pong") do |store|
  partner = fork do # the child goes on with the open store; the pool it opens for itself
    pool, there, back = open_pool(store)
    play(pool, there, back, 0)
  end
  pool, there, back = open_pool(store)
  endpoint = pool.endpoint
  endpoint.pop(pool.free).write(0, [0].pack("Q<")).push(there)
  play(pool, back, there, 1)
  Process.wait(partner)
  abort "the other player has failed" unless $?.success?
  abort "the ball was passed on too often, or too seldom" unless endpoint.pop(pool.free).read.unpack1("Q<") == PASSES

  puts "two processes passed one element #{PASSES} times"
  puts "it carried every number from 0 to #{PASSES - 1}"
  store.remove
end
