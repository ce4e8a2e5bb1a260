# frozen_string_literal: true

require_relative "helper"
require "net/http"
require "tmpdir"

# Puma in cluster mode, as it is used: the application and its store are loaded before the workers are forked. One worker is killed.
class TestPuma < StoreTest
  WORKERS = 2
  APPLICATION = <<~'RUBY'
    require "hashmere"
    require "hashmere/limits"
    require "rack/session/hashmere"
    store = Hashmere.open(ENV.fetch("STORE"))
    limit = Hashmere::SlidingWindow.new(store, limit: 25, period: 3600)
    use Rack::Session::Hashmere, store: store
    map "/session" do
      run ->(env) { [200, {}, ["#{env["rack.session"]["seen"] = (env["rack.session"]["seen"] || 0) + 1}"]] }
    end
    map("/limited") { run ->(_env) { [limit.take("client").allowed? ? 200 : 429, {}, []] } }
    store["loaded by"] = Process.pid.to_s
    run ->(_env) { [200, {}, ["#{Process.pid} #{store.incr("requests", initial: 1)} #{store["loaded by"]}"]] }
  RUBY

  def setup
    super
    @folder = Dir.mktmpdir
    File.write(File.join(@folder, "config.ru"), APPLICATION)
    lib = $LOAD_PATH.map { |folder| "-I#{folder}" }
    @log = File.join(@folder, "log")
    command = ["puma", "--workers", WORKERS.to_s, "--preload", "--threads", "2:2", "--bind", "tcp://127.0.0.1:0", "config.ru"]
    @server = spawn({ "STORE" => @path, "RUBYOPT" => lib.join(" ") }, *command, chdir: @folder, %i[out err] => @log)
  end

  def teardown
    Process.kill(:TERM, @server)
    Process.wait(@server)
    FileUtils.rm_rf(@folder)
    super
  end

  # Puma says which port it got.
  def port
    @port ||= File.read(@log)[%r{Listening on http://127\.0\.0\.1:(\d+)$}, 1]
  end

  # [worker, number of the request, who opened the store]
  def ask
    tries ||= 0
    raise EOFError unless port

    Net::HTTP.get(URI("http://127.0.0.1:#{port}/")).split.map(&:to_i)
  rescue SystemCallError, EOFError, Net::ReadTimeout
    raise "puma does not answer: #{File.read(@log)}" if (tries += 1) > 2400

    sleep 0.1
    retry
  end

  def test_workers_share_sessions_and_limits
    ask
    Net::HTTP.start("127.0.0.1", port) do |http|
      first = http.get("/session")
      cookie = first["Set-Cookie"][/\A[^;]+/]
      seen = Array.new(30) { Net::HTTP.get(URI("http://127.0.0.1:#{port}/session"), "Cookie" => cookie) }
      assert_equal %w[1] + ("2".."31").to_a, [first.body] + seen
    end
    statuses = Array.new(30) { Net::HTTP.get_response(URI("http://127.0.0.1:#{port}/limited")).code }
    assert_equal ["200"] * 25 + ["429"] * 5, statuses
  end

  def test_workers_share_what_was_opened_before_they_were_forked
    answers = Array.new(4) { Thread.new { Array.new(30) { ask } } }.flat_map(&:value)
    workers = answers.map(&:first).uniq
    assert_equal @server, answers.first[2]
    refute_includes workers, @server
    Process.kill(:KILL, workers.first)
    answers += Array.new(4) { Thread.new { Array.new(30) { ask } } }.flat_map(&:value)
    numbers = answers.map { |answer| answer[1] }
    assert_equal numbers.uniq, numbers
    # Requests that the killed worker had begun were counted, and asked again.
    assert_includes 240..244, @store["requests"].to_i
    assert_empty @store.check
  end
end
