# frozen_string_literal: true

require "logger"

module Hashmere
  # Ruby's Logger on a {Log}: severity, the name of the program and the message keep their meaning, and there may be fields.
  #
  #   logger = Hashmere::Logger.new(store.log("web"), progname: "web")
  #   logger.warn("slow", path: "/", ms: 12)
  #   Rails.application.config.logger = ActiveSupport::TaggedLogging.new(logger)
  #
  # The severities DEBUG to ERROR are the levels of the log; FATAL and UNKNOWN are errors with a field `severity`. The name of the program is a
  # field `progname`. A formatter makes the text alone: time, severity and process are the log's. `level` is that of this logger; what the
  # log itself does not want, {Log#level=}, is not logged either. It holds no lock, so that it may be used in a signal's trap.
  class Logger < ::Logger
    # The text of a message, and nothing before or behind it.
    class Formatter < ::Logger::Formatter
      # @return [String]
      def call(_severity, _time, _progname, message)
        Log.text_of(message)
      end
    end

    # A message with fields: a String to every other logger that it is broadcast to.
    class Message < String
      # @private
      attr_reader :fields

      # @private
      def initialize(message, fields)
        super(Log.text_of(message))
        @fields = fields
      end
    end
    private_constant :Message

    # @param log [Log]
    # @param level [Integer, Symbol, String] as of Logger
    # @param formatter [#call, nil]
    def initialize(log, progname: nil, level: DEBUG, formatter: nil)
      raise TypeError, "a Hashmere::Log has to be given, not #{log.class}" unless log.is_a?(Log)

      super(nil, progname: progname, level: level, formatter: formatter || Formatter.new)
      @sink = log
    end

    # As of Logger, with fields. @return [true]
    def add(severity, message = nil, progname = nil, **fields)
      severity ||= UNKNOWN
      return true if severity < level

      progname = @progname if progname.nil?
      if message.nil?
        if block_given?
          message = yield
        else
          message = progname
          progname = @progname
        end
      end
      name = format_severity(severity)
      fields = message.fields.merge(fields) if Message === message
      fields = { progname: progname }.merge(fields) unless progname.nil?
      time = Time.now unless Formatter === @formatter # ours does not ask for it
      @sink.severed(name, format_message(name, time, progname, message).to_s.chomp, fields)
      true
    end
    alias log add

    { debug: DEBUG, info: INFO, warn: WARN, error: ERROR, fatal: FATAL, unknown: UNKNOWN }.each do |name, severity|
      define_method(name) do |message = nil, **fields, &block|
        # `add` may be that of another library, which knows nothing of fields.
        next add(severity, nil, message, &block) if fields.empty?
        next add(severity, nil, message) { Message.new(block.call, fields) } if block

        # What Logger does with `info(a: 1)`, which has always been a message.
        add(severity, message.nil? ? fields : Message.new(message, fields))
      end
    end

    # A line as it is, at the level of information. @return [self]
    def <<(text)
      @sink.write(text)
      self
    end

    # Closes the log. @return [nil]
    def close
      @sink.close
    end

    # There is nothing to open again. @return [self]
    def reopen(_log = nil)
      self
    end
  end
end
