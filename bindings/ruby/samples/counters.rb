# frozen_string_literal: true

# Several processes count in one store, and share something that the last of them removes.
require "hashmere"

PROCESSES = 4
STEPS = 1000

Hashmere.open("sample-counters") do |store|
  store.clear
  store.inc_ref("shared", PROCESSES)
  children = Array.new(PROCESSES) do
    fork do # the child goes on with the open store
      STEPS.times { store.incr("hits", initial: 1) }
      store.dec_ref("shared")
    end
  end
  children.each { |child| Process.wait(child) }

  puts "#{PROCESSES} processes counted to #{store["hits"]}"
  puts "the last of #{PROCESSES} references is gone: #{store.key?("shared") ? "no" : "yes"}"
  store.remove
end
