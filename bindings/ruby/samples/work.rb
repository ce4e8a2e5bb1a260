# frozen_string_literal: true

# Jobs are handed out to worker processes; one of them is killed, and what it was working on is done by another.
require "hashmere"

JOBS = 1000
NO_MORE = 2**64 - 1 # a job that says that there are no more
PATIENCE = 30

# A job is a number, and where its square goes.
def open_pool(store)
  pool = Hashmere::Pool.open(store, "jobs", elements: 64, bytes: 16)
  [pool, pool.queue("todo"), pool.queue("done")]
end

# Does jobs until there are no more. With one in its endpoint it calls the block first.
def work(store)
  pool, todo, done = open_pool(store)
  endpoint = pool.endpoint
  loop do
    job = endpoint.pop(todo, timeout: PATIENCE) or abort "there is nothing to do"
    yield if block_given?
    number = job.read(0, 8).unpack1("Q<")
    return job.push(pool.free) if number == NO_MORE

    job.write(8, [number * number].pack("Q<")).push(done)
  end
end

# Endpoints out all jobs and takes the results. As many as the pool has elements are under way at a time.
def hand_out(pool, todo, done, endpoint, following)
  was_done = {}
  JOBS.times do
    while following < JOBS && (job = endpoint.pop(pool.free))
      job.write(0, [following, 0].pack("Q<Q<")).push(todo)
      following += 1
    end
    # A pop that waits recovers the elements of crashed processes: each goes back to where it came from.
    job = endpoint.pop(done, timeout: PATIENCE) or abort "a job is lost"
    number, square = job.read.unpack("Q<Q<")
    abort "job #{number} was done twice, or wrongly" if square != number * number || was_done.key?(number)
    was_done[number] = true
    job.push(pool.free)
  end
end

Hashmere.remove("sample-work")
Hashmere.open("sample-work") do |store|
  pool, todo, done = open_pool(store)
  endpoint = pool.endpoint
  endpoint.pop(pool.free).write(0, [0, 0].pack("Q<Q<")).push(todo)

  # The first worker gets the first job, and is killed with it.
  said, say = IO.pipe
  victim = fork do
    work(store) do
      say.puts "I have a job"
      sleep PATIENCE
    end
  end
  said.gets
  Process.kill(:KILL, victim)
  Process.wait(victim)
  abort "the worker has no job" unless todo.empty?
  puts "a worker was killed with a job in its endpoint"
  $stdout.flush

  workers = Array.new(2) { fork { work(store) } }
  hand_out(pool, todo, done, endpoint, 1)
  workers.each { endpoint.pop(pool.free).write(0, [NO_MORE, 0].pack("Q<Q<")).push(todo) }
  workers.each { |worker| Process.wait2(worker)[1].success? or abort "a worker has failed" }
  abort "not every element is back" unless pool.stats[:recovered] == 1 && pool.free.size == 64

  puts "#{JOBS} jobs done by the others, none lost, none twice"
  store.remove
end
