# frozen_string_literal: true

require "hashmere"
require "minitest/autorun"
require "securerandom"
require "tmpdir"

# Without a folder from bindings/test, one that goes with the process: not that of the user's own stores.
unless ENV["HASHMERE_DIR"]
  ENV["HASHMERE_DIR"] = folder = Dir.mktmpdir("hashmere-ruby-", File.directory?("/dev/shm") ? "/dev/shm" : nil)
  Minitest.after_run { FileUtils.remove_entry(folder) }
end

# What tests with times use.
module Patience
  # Calls the block with a time to live, and with longer ones until it took less: nothing can have expired in between. Returns the result
  # and that time.
  def in_time(seconds)
    loop do
      start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      result = yield seconds
      return result, seconds if Process.clock_gettime(Process::CLOCK_MONOTONIC) - start < seconds / 2

      seconds *= 2
    end
  end
end
Minitest::Test.include Patience

# A test with a store of its own, removed behind it.
class StoreTest < Minitest::Test
  def setup
    @store = Hashmere.open("test-#{Process.pid}-#{SecureRandom.hex(4)}", **options)
    @path = @store.path
  end

  def teardown
    @store.close
    Hashmere.remove(@path)
  end

  def options = {}

  # Runs the block in a child, which has to succeed.
  def in_child(&block)
    pid = fork do
      ok = begin
        block.call
      rescue Exception => e
        warn e.full_message
        false
      end
      exit!(ok ? 0 : 1)
    end
    Process.wait(pid)
    assert_predicate $?, :success?
  end
end
