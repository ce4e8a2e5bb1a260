# redis-rb and the cache store of Rails do their usual work; values are compared.
require "redis"

port = Integer(ARGV.fetch(0))
def check(what) = yield || abort("failed: #{what}")

redis = Redis.new(host: "127.0.0.1", port: port)
redis.flushall
check("set") { redis.set("k", "v", ex: 100) == "OK" && redis.get("k") == "v" && redis.ttl("k").between?(1, 100) }
check("nx") { redis.set("k", "w", nx: true) == false && redis.setnx("k", "w") == false }
check("counters") { redis.incrby("n", 5) == 5 && redis.decr("n") == 4 && redis.incrbyfloat("f", 0.5) == 0.5 }
check("mget") { redis.mset("a", "1", "b", "2") == "OK" && redis.mget("a", "none", "b") == ["1", nil, "2"] }
check("transaction") { redis.multi { |t| t.incr("n"); t.get("n") } == [5, "5"] }
check("pipeline") { redis.pipelined { |p| p.append("k", "!"); p.strlen("k") } == [2, 2] }
check("scan") { redis.scan_each(match: "*").to_a.sort == %w[a b f k n] }
check("delete") { redis.del("a", "b") == 2 && redis.exists?("a") == false }
check("binary") { redis.set("\0\r\n", "\xff" * 100_000) == "OK" && redis.get("\0\r\n").bytesize == 100_000 }
check("watch") do
  redis.watch("k") do
    Redis.new(host: "127.0.0.1", port: port).set("k", "other")
    redis.multi { |t| t.set("k", "lost") }
  end.nil? && redis.get("k") == "other"
end
heard = nil
redis.subscribe_with_timeout(10, "news") do |on|
  on.subscribe { Redis.new(host: "127.0.0.1", port: port).publish("news", "hi") }
  on.message do |_, text|
    heard = text
    redis.unsubscribe("news")
  end
end
check("subscribe") { heard == "hi" }
passed = ["redis-rb #{Redis::VERSION}"]

begin
  require "active_support"
  require "active_support/cache"
  require "active_support/cache/redis_cache_store"
  store = ActiveSupport::Cache::RedisCacheStore.new(url: "redis://127.0.0.1:#{port}/0", namespace: "rails",
                                                    error_handler: ->(exception:, **) { abort("failed: #{exception}") })
  check("write") { store.write("k", { "a" => [1] }, expires_in: 100) && store.read("k") == { "a" => [1] } }
  check("fetch") { store.fetch("new") { "made" } == "made" && store.fetch("new") { "again" } == "made" }
  check("unless_exist") { !store.write("k", 1, unless_exist: true) }
  check("increment") { store.increment("count", 3, expires_in: 50) == 3 && store.decrement("count") == 2 }
  check("multi") { store.write_multi("x" => 1, "y" => 2) && store.read_multi("x", "y", "z") == { "x" => 1, "y" => 2 } }
  check("delete_matched") { store.delete_matched("x*") && store.read("x").nil? && store.read("y") == 2 }
  check("delete") { store.delete("y") && !store.exist?("y") }
  check("clear") { store.clear && store.read("k").nil? }
  passed << "ActiveSupport's RedisCacheStore #{ActiveSupport.version}"
rescue LoadError => error
  puts "left out: RedisCacheStore (#{error.message})"
end
puts "passed: #{passed.join(", ")}"
