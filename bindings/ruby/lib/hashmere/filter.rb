# frozen_string_literal: true

module Hashmere
  # What calls that take a filter give to the library.
  # @private
  module Filter
    # Letters of a Regexp's options in the syntax of the library. To Ruby, ^ and $ are always of lines.
    LETTERS = { Regexp::IGNORECASE => "i", Regexp::MULTILINE => "s", Regexp::EXTENDED => "x" }.freeze
    # What a scan returns for each key.
    PAIRS = 0
    KEYS = 1
    KEYS_AND_UIDS = 2
    FORMATS = { nil => 0, "tsv" => 1, "jsonl" => 2 }.freeze

    module_function

    # [prefix, glob, regex, part, parts]
    def parts(prefix: nil, glob: nil, regex: nil, part: nil)
      index, count = part.nil? ? [0, 0] : part
      if part && (!part.respond_to?(:to_ary) || part.to_ary.size != 2)
        raise ArgumentError, "part has to be [index, count], such as [0, 4], not #{part.inspect}"
      end
      raise BadPart, "there is no part #{index} of 0: there are 1 to 65536 parts, numbered from 0" if part && count == 0

      [prefix, glob, regex.is_a?(Regexp) ? translated(regex) : regex, index, count]
    end

    def translated(regexp)
      letters = LETTERS.sum("m") { |option, letter| (regexp.options & option).zero? ? "" : letter }
      "(?#{letters})#{regexp.source}"
    end

    def format(format)
      FORMATS.fetch(format&.to_s) { raise ArgumentError, "format has to be :tsv or :jsonl, not #{format.inspect}" }
    end
  end
end
