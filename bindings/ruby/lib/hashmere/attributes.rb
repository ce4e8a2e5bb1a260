# frozen_string_literal: true

module Hashmere
  # Times and flags as the library wants them.
  # @private
  module Attributes
    NEVER = 0
    AFTER = 1
    AT = 2
    # About 292 million years; what is beyond it is a mistake.
    LONGEST_MS = 2**63 - 1
    FOREVER = 2**64 - 1

    module_function

    # [kind, milliseconds] of a time to live in seconds or a moment.
    def expiry(ttl, expires_at)
      raise ArgumentError, "give ttl or expires_at, not both" if ttl && expires_at
      # What {Store#ttl} returns of a key that does not expire.
      return [NEVER, 0] if ttl == Float::INFINITY
      return [AFTER, milliseconds(ttl, "ttl")] if ttl
      return [AT, milliseconds(expires_at, "expires_at")] if expires_at

      [NEVER, 0]
    end

    # How long to wait; nil: forever.
    def timeout_ms(timeout)
      timeout.nil? ? FOREVER : milliseconds(timeout, "timeout")
    end

    # Rounded up, so that nothing lives shorter than it was said.
    def milliseconds(seconds, what)
      return seconds * 1000 if seconds.is_a?(Integer) && seconds.between?(0, LONGEST_MS / 1000)
      unless seconds.is_a?(Numeric) || seconds.respond_to?(:to_r)
        raise TypeError, "#{what} has to be a number of seconds#{" or a Time" if what == "expires_at"}, not #{seconds.class}"
      end
      raise TypeError, "#{what} has to be a number, not a String" if seconds.is_a?(String)

      float = seconds.to_f
      raise ArgumentError, "#{what} has to be a finite number, not #{float}" unless float.finite?
      raise ArgumentError, "#{what} must not be negative: #{seconds}" if float.negative?

      ms = (seconds.to_r * 1000).ceil
      raise RangeError, "#{what} is too large: #{seconds}" if ms > LONGEST_MS

      ms
    end
  end
end
