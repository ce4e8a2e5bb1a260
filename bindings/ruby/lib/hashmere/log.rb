# frozen_string_literal: true

module Hashmere
  class Store
    # The log of this name in this store: {Log.open}.
    def log(name, **options)
      Log.open(self, name, **options)
    end
  end

  # One ordered log of many threads and processes, in the file of a store; nothing is lost when one of them is killed. One *drainer*, a thread of any
  # of these processes or the command `hashmere log`, writes the lines out in the order of time. A line whose call has returned true is in
  # the store: it comes out, once, whatever becomes of the process.
  #
  #   log = store.log("web")                            # any process opens the same one; a forked child goes on with it
  #   log.info("slow", path: "/", ms: 12)
  #   log.debug { describe(everything) }               # the block runs if the level is wanted
  #   drainer = log.drain("/var/log/web.log", max_bytes: 64 << 20, keep: 5)
  #
  # As a device of Ruby's Logger, `Logger.new(store.log("web"))`, it knows the severity and the program's name of lines in the format of
  # Logger. {Logger} is one of its own, with fields.
  class Log
    # From the least to the most talkative.
    LEVELS = { off: 0, error: 1, warn: 2, info: 3, debug: 4, trace: 5 }.freeze
    # @private
    NAMES = LEVELS.invert.freeze
    # @private
    ON_FULL = { block: 0, drop: 1, overwrite: 2 }.freeze
    # @private
    ON_NO_DRAINER = { stdout: 0, keep: 1 }.freeze
    # @private
    ON_TOO_LONG = { split: 0, refuse: 1 }.freeze
    # @private
    FORMATS = { text: 0, colour: 1, json: 2 }.freeze
    # How Logger formats a line: its severity, the name of the program, and what it says.
    LOGGER = /\A[DIWEFA], \[[^\]\n]*\] +(DEBUG|INFO|WARN|ERROR|FATAL|ANY) -- ([^\n]*?): (.*?)\n?\z/m
    # The level of each severity of Logger.
    SEVERITIES = { "DEBUG" => 4, "INFO" => 3, "WARN" => 2, "ERROR" => 1, "FATAL" => 1, "ANY" => 1 }.freeze
    # Severities that are levels.
    ORDINARY = %w[DEBUG INFO WARN ERROR].freeze
    private_constant :ORDINARY, :NAMES, :ON_FULL, :ON_NO_DRAINER, :ON_TOO_LONG, :FORMATS, :LOGGER

    # Opens a log, and creates it if it is missing. Sizes count when it is created, the rest is for this handle.
    # @param level [Symbol, nil] as {#level=}; nil: as it is, :trace if the log is created
    # @param on_full [:block, :drop, :overwrite] what happens to a line for which this thread's ring has no room: the thread waits for the drainer,
    #   as long as `full_timeout` says, then `LogFull` is raised; the line is dropped; the thread's oldest lines are. What was lost is reported
    #   with its next line, or when it has ended.
    # @param on_no_drainer [:stdout, :keep] what happens to lines without a drainer: the thread that logs one writes them to standard output, or they stay
    # @param on_too_long [:split, :refuse] what happens to a line of more than `stats[:line_max]` bytes
    # @param rings [Integer, nil] how many threads of all processes can log at a time
    # @param ring_bytes [Integer, nil] room for lines that were not drained, for each thread
    # @param history_bytes [Integer, nil] room for lines that were drained and can still be followed
    # @param create [Boolean] false: `LogNotFound` if there is none
    def self.open(store, name, level: nil, on_full: :block, full_timeout: 30, on_no_drainer: :stdout, on_too_long: :split, rings: nil,
                  ring_bytes: nil, history_bytes: nil, create: true)
      _open(store, name, [create ? 0 : 1, rings || 0, ring_bytes || 0, history_bytes || 0, 0,
                          choice(ON_FULL, on_full, "on_full"), Attributes.timeout_ms(full_timeout), choice(ON_NO_DRAINER, on_no_drainer, "on_no_drainer"),
                          choice(ON_TOO_LONG, on_too_long, "on_too_long")]).tap { |log| log.level = level if level }
    end

    # Takes a log's name off it. A process that has it open may still drain it; new lines do not reach it any more. @return [Boolean] whether there was one
    def self.remove(store, name)
      _remove(store, name)
    end

    # The names of the logs of a store. @return [Array<String>]
    def self.list(store)
      _list(store)
    end

    # @private
    def self.choice(known, one, what)
      known.fetch(one) { raise ArgumentError, "#{what} has to be one of #{known.keys.map(&:inspect).join(", ")}, not #{one.inspect}" }
    end

    # @private
    # Text of what the caller wants to log, as Logger makes it.
    def self.text_of(message)
      case message
      when String then message
      when Exception then ["#{message.message} (#{message.class})", *message.backtrace].join("\n")
      else message.inspect
      end
    end

    # @private
    # Keys and values as the extension wants them.
    def self.parts_of(fields)
      fields.each_with_object([]) do |(key, value), parts|
        next if value.nil?

        simple = case value
                 when true, false, Float then value
                 when Integer then value.between?(-2**63, 2**64 - 1) ? value : value.to_s
                 when Exception then "#{value.message} (#{value.class})"
                 else value.to_s
                 end
        parts << key.to_s.dup.freeze << (simple.is_a?(String) ? simple.dup.freeze : simple)
      end
    end

    # Logs a line, with fields if there are any. What is no String is inspected; an exception is written with its backtrace.
    # Values of fields stay numbers and truth values if they are; what is nil is left out, anything else is `to_s`.
    # @param level [Symbol] `:error`, `:warn`, `:info`, `:debug`, `:trace`
    # @return [Boolean] false: its level is not wanted, or there was no room and it was to be dropped
    def log(level, message = nil, **fields)
      number = Log.choice(LEVELS, level, "the level")
      return false unless _enabled?(number)

      message = yield if message.nil? && block_given?
      append(number, message, fields)
    end

    LEVELS.each do |name, number|
      next if number.zero?

      define_method(:"#{name}?") { _enabled?(number) }
      define_method(name) do |message = nil, **fields, &block|
        return false unless _enabled?(number)

        message = block.call if message.nil? && block
        append(number, message, fields)
      end
    end

    # The least important level that is wanted; `:off`: none. It is the same for all processes.
    def level
      NAMES.fetch(_level)
    end

    # Sets it, for all processes, at once.
    def level=(name)
      _set_level(Log.choice(LEVELS, name, "the level"))
    end

    # For Logger, of which this is a device: a line in the format of Logger keeps its severity, and the name of the program as the field
    # `progname`. Others are logged at `:info`. @return [Integer] how many bytes there were
    def write(text)
      text = text.to_s
      if (severity, program, said = LOGGER.match(text.scrub)&.captures)
        severed(severity, said, program.empty? ? {} : { progname: program })
      else
        _enabled?(3) && _line(3, text.chomp)
      end
      text.bytesize
    end

    # @private
    # A line of this severity of Logger; those that have no level of their own are distinguished by a field.
    def severed(severity, text, fields)
      number = SEVERITIES.fetch(severity, 1)
      return false unless _enabled?(number)

      fields = fields.merge(severity: severity) unless ORDINARY.include?(severity)
      append(number, text, fields)
    end

    # Becomes the drainer, in a thread of the library. It drains until it is stopped or the process ends, which drains the rest. If the process
    # is killed, the next drainer goes on where it was. A file that cannot be opened raises what `File.open` does.
    # @param to [String, #to_path, IO, nil] a file that is appended to, an open IO, whose descriptor is copied, or nil: standard output
    # @param format [:text, :colour, :json]
    # @param level [Symbol, nil] lines that are less important are taken and not written
    # @param max_bytes [Integer] before a file has more it becomes `to.1`, what was that `to.2`, and so on; 0: never
    # @param keep [Integer] the last of these; 0: it is begun again
    # @param standby [Boolean] if there is a drainer, wait until that one stops or crashes; otherwise `LogTaken` is raised
    # @return [Drainer, Integer] with a block, it is stopped behind the block, and the number of lines that it has taken is returned
    def drain(to = nil, format: :text, level: nil, max_bytes: 0, keep: 0, standby: false)
      drainer = _drain(*Log.drain_options(to, format, level, max_bytes, keep, standby))
      Drainer.running << drainer
      return drainer unless block_given?

      begin
        yield drainer
      ensure
        lines = drainer.stop
      end
      lines
    end

    # Becomes the drainer without a thread: for a loop of the program's own. Lines are written out by the caller of {ManualDrainer#poll}; the arguments are those of
    # {#drain}. `LogTaken` is raised if there is a drainer.
    # @return [ManualDrainer, Object] with a block, it is finished behind the block, whose result is returned
    def drain_manual(to = nil, format: :text, level: nil, max_bytes: 0, keep: 0)
      drainer = _drain_manual(*Log.drain_options(to, format, level, max_bytes, keep, false))
      return drainer unless block_given?

      begin
        yield drainer
      ensure
        drainer.finish unless drainer.finished?
      end
    end

    # @private
    def self.drain_options(to, format, level, max_bytes, keep, standby)
      kind, where = target_of(to)
      [where, [kind, choice(FORMATS, format, "format"), level ? choice(LEVELS, level, "the level") : 0, max_bytes, keep, standby ? 1 : 0]]
    end

    # @private
    # Which kind of output, and which one.
    def self.target_of(to)
      return [0, nil] if to.nil?

      path = to.is_a?(IO) ? nil : (to.respond_to?(:to_path) ? to.to_path : String.try_convert(to))
      if path
        # The drainer opens it in a thread of its own, which could not report that it failed.
        File.open(path, File::WRONLY | File::CREAT | File::APPEND, 0o600).close
        return [2, path]
      end
      io = IO.try_convert(to) or raise TypeError, "a path, an IO or nil has to be given, not #{to.class}"
      io.flush
      [1, io.fileno]
    end

    # Shows the lines that were drained, without consuming them, and waits for more.
    # @param last [Integer, nil] begins `last` lines back from now; nil: with the oldest that is left
    # @param timeout [Numeric, nil] ends when nothing has come for `timeout` seconds; nil: never
    # @yieldparam line [Line]
    # @return [self]
    def follow(last: 0, timeout: nil)
      return to_enum(:follow, last: last, timeout: timeout) unless block_given?

      follower = follower(last: last)
      while (line = follower.next(timeout: timeout))
        yield line
      end
      self
    ensure
      follower&.close
    end

    # The same for a loop of the program's own.
    # @param last [Integer, nil] as of {#follow}
    # @return [Follower]
    def follower(last: 0)
      _follow(last || Attributes::FOREVER)
    end

    # Waits until all lines that were logged before were delivered. Without a drainer, and unless they are to be kept, writes them itself.
    # @return [Boolean] false: the time is up
    def flush(timeout: 5)
      _flush(Attributes.timeout_ms(timeout))
    end

    private

    def append(number, message, fields)
      text = Log.text_of(message)
      fields.empty? ? _line(number, text) : _line_fields(number, text, Log.parts_of(fields))
    end

    # A thread of the library that drains a log of this process: {Log#drain}.
    class Drainer
      # @private
      # They drain until they are stopped, also if no variable holds them.
      @running = []
      class << self
        # @private
        attr_reader :running
      end

      # Drains the rest, and ends. In a forked child it does nothing, for the thread is the parent's.
      # @return [Integer] how many lines it has taken in all
      def stop
        Drainer.running.delete(self)
        _stop
      end
    end

    # The role of the drainer without a thread: {Log#drain_manual}. One thread at a time.
    class ManualDrainer
      # Readable while there is something to drain, for `IO.select` and event loops. A thread of the library raises it; {#poll} takes that back when it
      # leaves nothing. It belongs to the drainer: do not read or close it.
      # @return [IO]
      def to_io
        descriptor = _fileno
        @io ||= IO.for_fd(descriptor, autoclose: false)
      end
    end

    # Reads lines: {Log#follow}, {Log#follower}.
    class Follower
      # Readable while there is a line, for `IO.select` and event loops. A thread of the library raises it; {#next} takes that back when it finds none: call
      # it with a timeout of 0 until it returns nil. It belongs to the follower: do not read or close it.
      # @return [IO]
      def to_io
        descriptor = _fileno
        @io ||= IO.for_fd(descriptor, autoclose: false)
      end

      # @return [Line, nil] the next line; nil: none came
      def next(timeout: nil)
        parts = _next(Attributes.timeout_ms(timeout))
        parts && Line.from(parts)
      end
    end

    # A line as a follower of a log sees it: its text, `fields` by their names, `level`, the time when it was logged, the process with its id,
    # a number that no other thread has, how many lines of the thread were `lost` before it, whether the thread's next line
    # continues it (`more`), or it continues the one before (`continued`), and its `position`, which grows from line to line. A `note` was
    # not logged: it only says how many were `lost`, of a thread that has ended, or that had its ring before.
    Line = Struct.new(:text, :fields, :level, :time, :process, :pid, :thread, :lost, :more, :continued, :position, :note) do
      # @private
      def self.from(parts)
        text, fields, level, ns, process, pid, thread, lost, flags, position = parts
        time = Time.at(ns / 1_000_000_000, ns % 1_000_000_000, :nsec)
        new(text, fields, LEVELS.key(level), time, process, pid, thread, lost, flags.anybits?(1), flags.anybits?(2), position,
            flags.anybits?(4))
      end
    end

    private_class_method :_open, :_remove, :_list
  end
end
