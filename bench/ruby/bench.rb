# frozen_string_literal: true

# Hashmere in Ruby beside a plain Hash and Dalli with a local memcached. `make bench-ruby` calls it.
#
# 2,000,000 times: set, then get, of `rand(10000).to_s`, where the value is the key. What is read is compared in a first round. The
# time of making the random keys is in the figures, as in the benchmark that localmemcache published. Each system runs in a process
# of its own, in turns; medians count. Dalli does a fiftieth of it. The bars come last; with --strict a missed one is an error.
require "open3"

OPERATIONS = 2_000_000
PART = { "dalli" => 50 }.freeze
RUNS = 5
SEED = 20

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def work(system, count)
  count.times do
    key = rand(10_000).to_s
    system[key] = key
    system[key]
  end
end

# Dalli with brackets.
class Memcached
  def initialize(port)
    require "dalli"
    @client = Dalli::Client.new("127.0.0.1:#{port}", raw: true)
  end

  def [](key) = @client.get(key)

  def []=(key, value)
    @client.set(key, value)
  end
end

def make(name)
  case name
  when "hash" then {}
  when "hashmere"
    require "hashmere"
    Hashmere.open("bench-ruby").tap { |store| at_exit { store.remove } }
  else Memcached.new(ENV.fetch("MEMCACHED_PORT"))
  end
end

# Nanoseconds of a set with its get, in this process.
def measure(name)
  srand(SEED)
  system = make(name)
  10_000.times do |n|
    system[n.to_s] = n.to_s
    raise "#{name} returned something else" unless system[n.to_s] == n.to_s
  end
  GC.start
  count = OPERATIONS / PART.fetch(name, 1)
  begin_at = now
  work(system, count)
  (now - begin_at) / count * 1e9
end

def run(name)
  out, status = Open3.capture2(RbConfig.ruby, __FILE__, "--one", name)
  raise "#{name} failed" unless status.success?

  Float(out)
end

if ARGV[0] == "--one"
  puts measure(ARGV[1])
  exit
end

names = %w[hash hashmere] + (ENV.key?("MEMCACHED_PORT") ? %w[dalli] : [])
times = names.to_h { |name| [name, []] }
RUNS.times { names.each { |name| times[name] << run(name) } }
puts "set and get of rand(10000).to_s, ns a pair: median of #{RUNS} (lowest to highest)"
median = times.transform_values { |all| all.sort[all.size / 2] }
times.each { |name, all| puts format("  %-10s %8.0f (%.0f to %.0f)", name, median[name], all.min, all.max) }

missed = 0
bar = lambda do |text, ratio, good|
  missed += 1 unless good
  puts format("bar: %s: %.2f %s", text, ratio, good ? "PASS" : "FAIL")
end
ratio = median["hashmere"] / median["hash"]
bar.call("at most 1.0x the time of a Hash", ratio, ratio <= 1.0)
if median["dalli"]
  ratio = median["dalli"] / median["hashmere"]
  bar.call("at least 10x as fast as Dalli with memcached", ratio, ratio >= 10)
end
exit 1 if missed.positive? && ARGV.include?("--strict")
