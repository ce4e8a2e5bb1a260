# Dalli in both of its protocols, as far as the installed version has them; values are compared.
require 'dalli'

def check(what, is) = is ? nil : abort("dalli: #{what}")

[:binary, :meta].each do |protocol|
  begin
    # Longer than a server of a busy machine takes.
    dc = Dalli::Client.new("127.0.0.1:#{ARGV[0]}", protocol: protocol, socket_timeout: 120)
    dc.set('a', { 'x' => [1, 2] }, 1000)
  rescue ArgumentError
    puts "dalli #{Dalli::VERSION} #{protocol}: not known, left out"
    next
  end
  check 'get', dc.get('a') == { 'x' => [1, 2] }
  check 'cas', dc.cas('a') { |_| 'next' }
  check 'after cas', dc.get('a') == 'next'
  100.times { |i| dc.set("k#{i}", i) }
  check 'get_multi', dc.get_multi(*(0...100).map { |i| "k#{i}" }).size == 100
  check 'incr', dc.incr('n', 1, 0, 10) == 10 && dc.incr('n', 5) == 15 && dc.decr('n', 20) == 0
  check 'add', !dc.add('a', 1) && dc.replace('a', 2)
  check 'append', dc.set('r', 'b', 0, raw: true) && dc.append('r', 'c') && dc.get('r', raw: true) == 'bc'
  check 'touch', dc.touch('r', 1000)
  check 'delete', dc.delete('r') && dc.get('r').nil?
  check 'stats', dc.stats.values.first['curr_items'].to_i > 100
  check 'flush', dc.flush && dc.get('a').nil?
  puts "dalli #{Dalli::VERSION} #{protocol}: ok"
end
