# frozen_string_literal: true

module Hashmere
  # A value with everything that belongs to it. `version` grows with every change of the key; `uid` is the key's number as long as
  # it exists ({Uid}); `expires_at` is a Time, or nil for never.
  Item = Struct.new(:value, :version, :uid, :flags, :expires_at, keyword_init: true) do
    # @private
    def self.from(parts)
      value, version, uid, flags, expires_ms, = parts
      new(value: value, version: version, uid: Uid.new(uid), flags: flags, expires_at: time(expires_ms))
    end

    # @private
    def self.time(milliseconds)
      milliseconds.zero? ? nil : Time.at(0, milliseconds, :millisecond)
    end
  end

  # A value in place in the file, without a copy. The bytes stay as they were until {#release}, also when the key is
  # overwritten or deleted; each view holds back the room of a segment until then.
  class View
    # A part of it as a String, or all of it.
    def [](start, count = nil)
      return getbyte(start) if count.nil? && start.is_a?(Integer)

      start, count = Range === start ? bounds(start) : [start, count]
      start && byteslice(start, count)
    end

    alias size bytesize
    alias length bytesize

    # All of it as a String.
    def to_s
      byteslice(0, bytesize)
    end

    def each_byte
      return to_enum(:each_byte) { bytesize } unless block_given?

      bytesize.times { |at| yield getbyte(at) }
      self
    end

    def bytes
      each_byte.to_a
    end

    def version
      _meta[1]
    end

    def uid
      Uid.new(_meta[2])
    end

    def flags
      _meta[3]
    end

    def expires_at
      Item.time(_meta[4])
    end

    private

    def bounds(range)
      first = range.begin || 0
      first += bytesize if first.negative?
      return if first.negative?

      last = range.end || -1
      last += bytesize if last.negative?
      [first, [last - first + (range.exclude_end? && range.end ? 0 : 1), 0].max]
    end
  end

  # Room for a value in the file, zeros at first: see {Store#reserve}.
  class Reservation
    alias []= setbyte
    alias size bytesize
    alias length bytesize
  end
end
