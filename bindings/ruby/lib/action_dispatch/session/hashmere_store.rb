# frozen_string_literal: true

require "action_dispatch"
require "action_dispatch/middleware/session/abstract_store"
require "hashmere/sessions"

module ActionDispatch
  module Session
    # Rails' sessions in a store that all workers of the machine share:
    #
    #   config.session_store :hashmere_store, store: "my-site-sessions", expire_after: 1.hour
    #
    # Options: {::Hashmere::Sessions}. (`:cache_store` with `ActiveSupport::Cache::HashmereStore` is the other choice: there those
    # that are not used go.)
    class HashmereStore < AbstractSecureStore
      include ::Hashmere::Sessions

      # The store without the option.
      NAME = "rails-sessions"
    end
  end
end
