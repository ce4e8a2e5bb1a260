# frozen_string_literal: true

require_relative "helper"

# Hundreds of stores in one process, which all grow; and a process that may have no more addresses: `AddressSpace`, and nothing else.
class TestAddresses < StoreTest
  STORES = 400

  def test_hundreds_of_stores
    stores = Array.new(STORES) { |n| Hashmere.open("many-#{Process.pid}-#{n}", segment_bytes: 4096) }
    stores.each_with_index { |store, n| store["k"] = n.to_s }
    stores.each_slice(STORES / 4) { |some| 50.times { |n| some.first[n.to_s] = "x" * (1 << 20) } }
    # One mapping each. (The path of a store that this process made is a number there; and without the device, the inode
    # of a store may be that of a library.)
    files = stores.map { |store| identity(File.stat(store.path)) }
    mapped = File.foreach("/proc/self/maps").map { |line| line.split[3, 2] }
    assert_equal files.sort, mapped.select { |file| files.include?(file) }.sort
    stores.each_with_index { |store, n| assert_equal n.to_s, store["k"] }
  ensure
    stores&.each do |store|
      path = store.path
      store.close
      Hashmere.remove(path)
    end
  end

  # As `/proc/self/maps` writes them: device and inode.
  def identity(stat)
    [format("%02x:%02x", stat.dev_major, stat.dev_minor), stat.ino.to_s]
  end

  LIMITED = <<~RUBY
    store = Hashmere.open(ARGV[0])
    most = File.read("/proc/self/statm").to_i * 4096 + (64 << 20)
    Process.setrlimit(:AS, most)
    value = "v" * 100_000
    number = 0
    begin
      while number < 10_000
        store[number.to_s] = value
        number += 1
      end
    rescue Hashmere::AddressSpace => e
      raise e unless e.code == 13 && e.message.include?("RLIMIT_AS")
    end
    number.times { |n| raise n.to_s unless store[n.to_s] == value }
    raise number.to_s if number > 1000 || store.key?(number.to_s)
    puts number
  RUBY

  def test_a_process_without_addresses
    number = IO.popen([RbConfig.ruby, "-rhashmere", "-e", LIMITED, @path], &:read).to_i
    assert_operator number, :>, 10
    assert_equal number, @store.size
    (number..2 * number + 1000).each { |n| @store[n.to_s] = "w" * 100_000 }
    assert_empty @store.check
  end
end
