# frozen_string_literal: true

require "rack/session/abstract/id"
require "hashmere/sessions"

module Rack
  module Session
    # Sessions in a store that all workers of the machine share:
    #
    #   use Rack::Session::Hashmere, store: "my-site-sessions", expire_after: 3600
    #
    # Options: {::Hashmere::Sessions}.
    class Hashmere < Abstract::PersistedSecure
      include ::Hashmere::Sessions

      # The store without the option.
      NAME = "rack-sessions"
    end
  end
end
