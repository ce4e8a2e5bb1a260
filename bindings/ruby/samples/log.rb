# frozen_string_literal: true

# Three processes log into one stream, which a fourth writes to a file.
require "hashmere"
require "tmpdir"

PROCESSES = 3
LINES = 100

def work(log)
  LINES.times do |number|
    log.info("line #{number}")
    log.debug { "line #{number}, with all the details" } if (number % 10).zero?
  end
end

# Looks at lines such as `2026-11-22T01:12:56.123456Z INFO  log[4711] 3: line 7`. Returns how many are those of debug.
def check(lines, pids)
  seen = {}
  last = ""
  debug = lines.count do |line|
    time, level, pid, said = line.match(/\A(\S+) (\S+) +.*\[(\d+)\] \d+: (.*)$/)&.captures
    abort "out of the order of time: #{line}" if time.nil? || time < last
    last = time
    next true if level == "DEBUG"

    abort "this was not logged: #{line}" unless level == "INFO" && pids.include?(pid.to_i)
    abort "it is there twice: #{line}" if seen.key?([pid, said])
    seen[[pid, said]] = true
    false
  end
  pids.product((0...LINES).to_a) { |pid, number| abort "line #{number} of #{pid} is lost" unless seen.key?([pid.to_s, "line #{number}"]) }
  debug
end

path = File.join(Dir.tmpdir, "hashmere-sample-log-#{Process.pid}.log")
Hashmere.remove("sample-log")
Hashmere.open("sample-log") do |store|
  log = store.log("log", level: :info)
  pids = []
  log.drain(path) do
    pids = Array.new(PROCESSES) { fork { work(log) } } # the children go on with the open log
    pids.each { |pid| Process.wait2(pid)[1].success? or abort "a worker has failed" }
  end # what was not written yet has been written now

  debug = check(File.readlines(path), pids)
  puts "#{PROCESSES * LINES} lines of #{PROCESSES} processes, none lost, none twice"
  puts "in the order of time, with levels and process ids"
  puts "the debug lines were not wanted: #{debug}"
  File.delete(path)
  store.remove
end
