# frozen_string_literal: true

# ActionPack's own tests of a session store, from the folder RAILS_TESTS (bindings/ruby/rails-tests fetches them). Left out are those of
# the autoloader, and of sessions under ids that Rails before 6 gave: this store never had any.
require_relative "helper"
require "action_controller"
require "action_dispatch"
require "action_dispatch/session/hashmere_store"
require "active_support/test_case"
require "active_support/testing/autorun"

folder = ENV.fetch("RAILS_TESTS", "")
if folder.empty?
  warn "ActionPack's own tests are not here: Debian's mirror could not be reached"
  exit
end
ActiveSupport::TestCase.test_order = :random
# What their abstract_unit has that they use; that itself needs packages of browsers.
$LOADED_FEATURES << "abstract_unit.rb"
class ActionDispatch::IntegrationTest
  # Routes behind middleware.
  Application = Struct.new(:routes, :stack) do
    def call(env) = stack.call(env)
  end

  def self.build_app(routes)
    stack = ActionDispatch::MiddlewareStack.new do |middleware|
      middleware.use ActionDispatch::ShowExceptions, ActionDispatch::PublicExceptions.new("")
      middleware.use ActionDispatch::Cookies
      middleware.use ActionDispatch::Flash
      yield middleware
    end
    Application.new(routes, stack.build(routes))
  end

  def with_routing
    yield ActionDispatch::Routing::RouteSet.new
  end
end
# They are older than Debian's rack-test.
class Rack::Test::CookieJar
  def hash_for = @cookies.to_h { |cookie| [cookie.name, cookie] }
end
$LOAD_PATH.unshift File.join(folder, "actionpack/test")
require "dispatch/session/cache_store_test"

class CacheStoreTest
  undef_method :with_test_route_set, :test_deserializes_unloaded_class
  undef_method :test_can_read_session_with_legacy_id, :test_drop_session_in_the_legacy_id_as_well

  teardown do
    @store.close
    Hashmere.remove(@name)
  end

  private

  # As theirs, with this store in the place of a cache.
  def with_test_route_set
    @name = "suite-#{Process.pid}-#{SecureRandom.hex(4)}"
    @store = Hashmere.open(@name)
    sessions = @store.coded(Hashmere::JSONCoder)
    @cache = Object.new
    @cache.define_singleton_method(:read) { |key| sessions[key] }
    with_routing do |routes|
      routes.draw { ActiveSupport::Deprecation.silence { get ":action", to: ::CacheStoreTest::TestController } }
      @app = self.class.build_app(routes) do |middleware|
        middleware.use ActionDispatch::Session::HashmereStore, key: "_session_id", store: @store, prefix: "_session_id:"
        middleware.delete ActionDispatch::ShowExceptions
      end
      yield
    end
  end
end
