# Dalli at a cluster. It speaks the binary protocol (from 3.2 also meta commands), which twemproxy does not; so it goes to the
# servers themselves, and finds the one of a key as twemproxy does: md5 and ketama, by the names of the servers.
# Usage: dalli.rb NAME=ADDRESS,... write | read CLIENT...
require 'dalli'
require 'digest/md5'

KEYS = 100
POINTS = 160
servers = ARGV.shift.split(',').map { |server| server.split('=') }
clients = servers.to_h { |name, address| [name, Dalli::Client.new(address, raw: true)] }

# Four points of the ring in each digest.
ring = servers.flat_map do |name, _|
  (0...POINTS / 4).flat_map { |n| Digest::MD5.digest("#{name}-#{n}").unpack('L<4').map { |point| [point, name] } }
end.sort

server = lambda do |key|
  hash = Digest::MD5.digest(key).unpack1('L<')
  clients.fetch((ring.bsearch { |point, _| point >= hash } || ring.first)[1])
end

verb = ARGV.shift
if verb == 'write'
  KEYS.times { |i| server.("dalli:#{i}").set("dalli:#{i}", "dalli-#{i}", 0, raw: true) or abort "dalli cannot write #{i}" }
  puts 'dalli'
else
  ARGV.each do |other|
    KEYS.times do |i|
      found = server.("#{other}:#{i}").get("#{other}:#{i}", raw: true)
      found == "#{other}-#{i}" or abort "dalli does not find #{other}:#{i}, but #{found.inspect}"
    end
  end
  warn "dalli #{Dalli::VERSION}, without the proxy: finds the keys of #{ARGV.join(', ')}"
end
