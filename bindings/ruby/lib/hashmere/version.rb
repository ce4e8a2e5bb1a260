# frozen_string_literal: true

module Hashmere
  VERSION = "0.1.0"
end
