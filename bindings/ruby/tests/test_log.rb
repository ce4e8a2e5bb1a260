# frozen_string_literal: true

require_relative "helper"
require "json"
require "logger"
require "timeout"
require "tmpdir"

# The log of many processes, and Ruby's Logger on it.
class TestLog < StoreTest
  def setup
    super
    @dir = Dir.mktmpdir("hashmere-log")
    @file = File.join(@dir, "lines")
  end

  def teardown
    FileUtils.rm_rf(@dir)
    super
  end

  # What the block logs, as objects.
  def drained(log, **how, &block)
    log.drain(@file, format: :json, **how, &block)
    File.readlines(@file).map { |line| JSON.parse(line) }
  end

  def test_levels_fields_and_blocks
    log = @store.log("log")
    assert_equal :trace, log.level
    log.level = :info
    lines = drained(log) do
      assert log.info("slow", path: "/", ms: 12, ratio: 0.5, big: 2**63, huge: 2**70, ok: true, none: nil, of: :symbol)
      refute(log.debug { flunk "not wanted" })
      refute log.trace("x")
      assert(log.error { "made" })
      assert log.log(:warn, RuntimeError.new("broken"))
      assert log.warn([1, 2])
    end
    assert_equal %w[slow made broken\ (RuntimeError) [1,\ 2]], lines.map { |line| line["text"] }
    assert_equal %w[INFO ERROR WARN WARN], lines.map { |line| line["level"].upcase }
    assert_equal({ "path" => "/", "ms" => 12, "ratio" => 0.5, "big" => 2**63, "huge" => (2**70).to_s, "ok" => true, "of" => "symbol" },
                 lines[0]["fields"])
    assert_equal [Process.pid], lines.map { |line| line["pid"] }.uniq
    assert_equal [true, false], [log.info?, log.debug?]
    log.level = :off
    refute log.error("x")
    assert_equal :off, @store.log("log").level
  end

  def test_bad_arguments
    assert_raises(Hashmere::LogNotFound) { @store.log("none", create: false) }
    assert_raises(ArgumentError) { @store.log("log", on_full: :other) }
    assert_raises(ArgumentError) { @store.log("log", level: :loud) }
    assert_raises(TypeError) { Hashmere::Log.open(7, "log") }
    assert_raises(TypeError) { @store.log(nil) }
    assert_raises(Hashmere::LogBadOption) { @store.log("") }
    log = @store.log("log", on_too_long: :refuse)
    assert_raises(ArgumentError) { log.log(:loud, "x") }
    assert_raises(ArgumentError) { log.level = 7 }
    assert_raises(TypeError) { log.drain(7) }
    assert_raises(Errno::ENOENT) { log.drain("/nowhere/at/all") }
    assert_raises(TypeError) { Hashmere::Logger.new($stdout) }
    log.drain(@file) do
      assert_raises(Hashmere::LogTaken) { in_child_error { log.drain(@file) } }
      assert_raises(Hashmere::LogTooLong) { log.info("x" * 20_000) }
    end
    log.close
    assert_raises(Hashmere::Closed) { log.info("x") }
    assert Hashmere::Log.remove(@store, "log")
    refute Hashmere::Log.remove(@store, "log")
  end

  # Raises here what the block raises in a child.
  def in_child_error
    from, to = IO.pipe
    Process.wait(fork do
      yield
    rescue Hashmere::Error => e
      to.write(e.class.name)
    ensure
      to.close
      exit!(0)
    end)
    to.close
    name = from.read
    raise Object.const_get(name), "in a child" unless name.empty?
  end

  def test_a_full_ring
    log = @store.log("log", ring_bytes: 4096, on_no_drainer: :keep, on_full: :drop)
    assert_equal [true, false], Array.new(200) { log.info("x" * 100) }.uniq
    blocked = @store.log("log", on_no_drainer: :keep, full_timeout: 0.05)
    assert_raises(Hashmere::LogFull) { 200.times { blocked.info("y" * 100) } }
    patient = @store.log("log", on_no_drainer: :keep, full_timeout: nil)
    assert_raises(Timeout::Error) { Timeout.timeout(0.1) { 200.times { patient.info("y" * 100) } } }
    thread = Thread.new { 1000.times { |n| patient.info("#{n} #{"z" * 100}") } } # in a ring of its own, and soon waiting
    Thread.pass until thread.stop?
    lines = drained(log) { thread.join }
    assert_equal (0...1000).to_a, lines.filter_map { |line| line["text"][/\A(\d+) z/, 1]&.to_i }
    assert_operator lines.count { |line| line["text"].start_with?("x") }, :>, 10
  end

  # What a thread logs that waits for room stays where it is while another one compacts the heap.
  def test_compaction_while_a_line_waits
    log = @store.log("log", ring_bytes: 4096, on_no_drainer: :keep, full_timeout: nil)
    thread = Thread.new { 100.times { |n| log.info("#{"x" * 10}#{n}", "key#{n}": "value #{n}") } }
    Thread.pass until thread.stop?
    5.times { GC.verify_compaction_references(double_heap: true, toward: :empty) and sleep 0.01 }
    lines = drained(log) { thread.join }
    assert_equal (0...100).map { |n| ["xxxxxxxxxx#{n}", { "key#{n}" => "value #{n}" }] }, lines.map { |line| line.values_at("text", "fields") }
  end

  # Children that were forked with the log open, one of which is killed: each has its lines, in the order of time.
  def test_forks_and_a_kill
    log = @store.log("log", on_no_drainer: :keep)
    Hashmere::Logger.new(log).info("before")
    children = []
    lines = drained(log) do
      children = Array.new(3) do |child|
        fork do
          log.info("first")
          Process.kill(:KILL, Process.pid) if child.zero?
          50.times { |n| log.info("line", n: n) }
        end
      end
      children.each { |child| Process.wait(child) }
    end
    lines.reject! { |line| line["text"] == "before" }
    assert_equal lines.map { |line| line["time"] }.sort, lines.map { |line| line["time"] }
    each = lines.group_by { |line| line["pid"] }.transform_values(&:size)
    assert_equal({ children[0] => 1, children[1] => 51, children[2] => 51 }, each)
  end

  def test_logs_and_rings_are_listed
    assert_equal [], Hashmere::Log.list(@store)
    logs = %w[one two].map { |name| @store.log(name, on_no_drainer: :keep) }
    assert_equal %w[one two], Hashmere::Log.list(@store).sort
    assert_equal [], logs[0].rings
    logs[0].info("waits")
    ring = logs[0].rings.fetch(0)
    assert_equal [Process.pid, true, 0], ring.values_at(:pid, :owned, :unreported_drops)
    assert_operator ring[:bytes_waiting], :>, 0
    logs[0].drain(@file).stop
    assert_equal 0, logs[0].rings.fetch(0)[:bytes_waiting]
    assert_raises(TypeError) { Hashmere::Log.list("store") }
    logs.each(&:close)
    assert_raises(Hashmere::Closed) { logs[0].rings }
  end

  def test_loops_of_the_program
    log = @store.log("log", on_no_drainer: :keep)
    manual = log.drain_manual(@file)
    assert_raises(Hashmere::LogTaken) { log.drain }
    follower = log.follower(last: nil)
    assert_nil follower.next(timeout: 0)
    log.info("first")
    lines = 0
    while lines.zero?
      assert_equal [[manual], [], []], IO.select([manual], nil, nil, 120)
      lines += manual.poll
    end
    assert_equal 1, lines
    assert_equal [[follower], [], []], IO.select([follower], nil, nil, 120)
    assert_equal "first", follower.next(timeout: 0).text
    log.info("last")
    assert_equal 1, manual.finish
    assert_predicate manual, :finished?
    assert_raises(Hashmere::Closed) { manual.poll }
    assert_equal %w[first last], File.readlines(@file).map { |line| line[/\w+$/] }
    assert_equal(0, log.drain_manual(@file) { |other| other.poll })
    follower.close
    assert_raises(Hashmere::Closed) { follower.to_io }
  end

  def test_following_and_other_outputs
    log = @store.log("log", on_no_drainer: :keep)
    log.info("old", n: -1)
    from, to = IO.pipe
    drainer = log.drain(to)
    assert_predicate drainer, :active?
    assert log.flush
    thread = Thread.new { log.follow(last: 1, timeout: 120).first(2) }
    assert_match(/ INFO .*\[#{Process.pid}\] \d+: old n=-1\n/, from.gets)
    Thread.pass until thread.stop?
    log.warn("new")
    first, second = thread.value
    assert_equal ["old", { "n" => -1 }, :info, Process.pid], [first.text, first.fields, first.level, first.pid]
    assert_equal ["new", :warn, 0, false], [second.text, second.level, second.lost, second.more]
    assert_in_delta Time.now.to_f, second.time.to_f, 60
    assert_operator second.position, :>, first.position
    assert_equal [], log.follow(timeout: 0).to_a
    assert_equal 2, drainer.stop
    refute_predicate drainer, :active?
    assert_equal 0, drainer.stop
    assert_equal 2, log.stats[:lines]
    10.times { |n| log.info("line #{n} #{"x" * 100}") }
    log.drain(@file, max_bytes: 1000, keep: 1).stop
    assert_equal [@file, "#{@file}.1"], Dir["#{@file}*"].sort
  end

  def test_logger_on_a_device
    log = @store.log("log")
    lines = drained(log) do
      logger = Logger.new(log, progname: "web")
      logger.info("hello")
      logger.debug { "details\nin two lines" }
      logger.fatal("end")
      logger.add(Logger::WARN, "with: colons", "job")
      logger << "raw\n"
    end
    assert_equal ["hello", "details\nin two lines", "end", "with: colons", "raw"], lines.map { |line| line["text"] }
    assert_equal %w[INFO DEBUG ERROR WARN INFO], lines.map { |line| line["level"].upcase }
    assert_equal [{ "progname" => "web" }, { "progname" => "web", "severity" => "FATAL" }, { "progname" => "job" }, nil],
                 lines.values_at(0, 2, 3, 4).map { |line| line["fields"] }
  end

  def test_a_logger_of_its_own
    log = @store.log("log")
    lines = drained(log) do
      logger = Hashmere::Logger.new(log, progname: "web", level: :info)
      assert logger.info("slow", ms: 12)
      assert(logger.debug { flunk "not wanted" })
      logger.error(ArgumentError.new("bad"))
      logger.info(a: 1)
      logger.info("part") { "block" }
      logger.unknown("any")
      logger << "raw\n"
      logger.formatter = proc { |severity, time, progname, message| "#{severity} #{time.class} #{progname} #{message}\n" }
      logger.warn("shaped")
      trap(:USR1) { logger.warn("in a trap") }
      Process.kill(:USR1, Process.pid)
      Thread.pass until log.flush && File.read(@file).include?("in a trap")
    end
    texts = ["slow", "bad (ArgumentError)", { a: 1 }.inspect, "block", "any", "raw", "WARN Time web shaped", "WARN Time web in a trap"]
    assert_equal texts, lines.map { |line| line["text"] }
    assert_equal({ "progname" => "web", "ms" => 12 }, lines[0]["fields"])
    assert_equal "part", lines[3]["fields"]["progname"]
    assert_equal "ANY", lines[4]["fields"]["severity"]
  ensure
    trap(:USR1, "DEFAULT")
  end

  def test_active_support
    require "active_support"
    require "active_support/logger"
    require "active_support/tagged_logging"
    log = @store.log("log")
    lines = drained(log) do
      logger = ActiveSupport::TaggedLogging.new(Hashmere::Logger.new(log))
      logger.tagged("request 7") { logger.warn("tagged") }
      console = StringIO.new
      other = ActiveSupport::Logger.new(console)
      other.extend(ActiveSupport::Logger.broadcast(Hashmere::Logger.new(log)))
      other.error("to both")
      assert_equal "to both\n", console.string
      ours = Hashmere::Logger.new(log)
      ours.extend(ActiveSupport::Logger.broadcast(ActiveSupport::Logger.new(console)))
      ours.info("from ours", ms: 12)
      ours.warn("job", n: 1) { "block" }
      assert_equal "to both\nfrom ours\nblock\n", console.string
      ActiveSupport::Logger.new(log).info("plain")
    end
    assert_equal ["[request 7] tagged", "to both", "from ours", "block", "plain"], lines.map { |line| line["text"] }
    assert_equal [{ "ms" => 12 }, { "progname" => "job", "n" => 1 }], lines[2, 2].map { |line| line["fields"] }
    assert_equal %w[WARN ERROR INFO WARN INFO], lines.map { |line| line["level"].upcase }
  end

  def test_under_gc_stress
    log = @store.log("log", on_no_drainer: :keep)
    logger = Hashmere::Logger.new(log, progname: "x".dup)
    GC.stress = true
    log.info("a".dup, of: "b".dup, n: 1)
    logger.warn("c".dup)
    GC.stress = false
    lines = drained(log) { nil }
    GC.stress = true
    line = log.follow(last: 1, timeout: 0).first
    GC.stress = false
    assert_equal [["a", { "of" => "b", "n" => 1 }], ["c", { "progname" => "x" }]], lines.map { |one| one.values_at("text", "fields") }
    assert_equal ["c", { "progname" => "x" }], [line.text, line.fields]
  ensure
    GC.stress = false
  end
end
