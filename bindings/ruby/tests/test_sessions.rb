# frozen_string_literal: true

require_relative "helper"
require "action_controller"
require "action_dispatch/session/hashmere_store"
require "rack/mock"
require "rack/session/hashmere"

# Sessions of Rack and of Rails: what the session stores that come with them do.
class TestSessions < StoreTest
  # Counts; a path drops, renews or empties the session.
  APPLICATION = lambda do |env|
    session = env["rack.session"]
    options = env["rack.session.options"]
    case env["PATH_INFO"]
    when "/drop" then options[:drop] = true
    when "/renew" then options[:renew] = true
    when "/defer" then options[:defer] = true
    when "/nothing" then return [200, {}, ["nothing"]]
    when "/read" then return [200, {}, [session["seen"].inspect]]
    end
    session["seen"] = (session["seen"] || 0) + 1
    session["deep"] = { "list" => [1, nil, "é"] }
    [200, {}, [session["seen"].to_s]]
  end

  # A browser: it keeps the cookie.
  class Browser
    attr_accessor :cookie

    def initialize(app) = @app = app

    def get(path = "/")
      reply = Rack::MockRequest.new(@app).get(path, "HTTP_COOKIE" => @cookie.to_s)
      set = reply["Set-Cookie"]
      @cookie = set[/\A[^;]+/] if set
      reply.body
    end
  end

  def app(**options) = Rack::Session::Hashmere.new(APPLICATION, store: @store, **options)

  def browser(**options) = Browser.new(app(**options))

  def test_a_session
    person = browser
    other = browser
    assert_equal %w[1 2 3], Array.new(3) { person.get }
    assert_equal "1", other.get
    assert_equal 2, @store.length
    assert_equal "4", browser.tap { |same| same.cookie = person.cookie }.get
    id = person.cookie[/=(.*)/, 1]
    refute(@store.keys.any? { |key| key.include?(id) }, "the file has digests of ids")
    key = @store.keys.find { |name| @store[name].include?('"seen":4') }
    assert_equal({ "seen" => 4, "deep" => { "list" => [1, nil, "é"] } }, @store.coded(JSON)[key])
    assert_in_delta 14 * 86_400, @store.ttl(key), 600
  end

  def test_what_is_not_used_is_not_stored
    person = browser
    person.get("/nothing")
    assert_nil person.cookie
    assert_empty @store
  end

  def test_ids_that_a_browser_made_up
    person = browser
    person.cookie = "rack.session=#{"a" * 64}"
    assert_equal "1", person.get
    refute_equal "rack.session=#{"a" * 64}", person.cookie
    ["", "?", "%ff", "a" * 5000].each do |id|
      person.cookie = "rack.session=#{id}"
      assert_equal "1", person.get
    end
  end

  def test_drop_and_renew
    person = browser
    person.get
    before = person.cookie
    assert_equal "2", person.get("/renew")
    refute_equal before, person.cookie
    assert_equal 1, @store.length
    assert_equal "3", person.get
    assert_equal "1", browser.tap { |old| old.cookie = before }.get
    person.get("/drop")
    assert_equal "1", person.get
  end

  # What Rack's own tests ask of the session store that comes with it.
  def test_when_a_cookie_is_sent
    reply = ->(app, path, **with) { Rack::MockRequest.new(app).get(path, **with) }
    first = reply.(app, "/")
    cookie = first["Set-Cookie"][/\A[^;]+/]
    # Not again, and not for a session that was only read or that is not there.
    assert_equal [nil, "2"], reply.(app, "/", "HTTP_COOKIE" => cookie).then { |again| [again["Set-Cookie"], again.body] }
    assert_equal [nil, "2"], reply.(app, "/read", "HTTP_COOKIE" => cookie).then { |again| [again["Set-Cookie"], again.body] }
    assert_nil reply.(app, "/read")["Set-Cookie"]
    assert_nil reply.(app(expire_after: 3600), "/nothing")["Set-Cookie"]
    assert_equal 1, @store.length
    # Of one that lives for a time with each reply, so that the browser keeps it as long.
    assert_match(/expires=/i, reply.(app(expire_after: 3600), "/", "HTTP_COOKIE" => cookie)["Set-Cookie"])
    # Deferred: it is stored, and the browser is not told.
    assert_equal [nil, "1"], reply.(app, "/defer").then { |deferred| [deferred["Set-Cookie"], deferred.body] }
    assert_equal 2, @store.length
    # A session that is dropped takes no cookie with it, and leaves nothing.
    assert_nil reply.(app, "/drop", "HTTP_COOKIE" => cookie)["Set-Cookie"]
    assert_equal 1, @store.length
    assert_match(/SameSite=None/, reply.(app(same_site: :none), "/")["Set-Cookie"])
    assert_match(/SameSite=Lax/, reply.(app(same_site: ->(_request, _response) { :lax }), "/")["Set-Cookie"])
  end

  # A request that has the session loaded while another one deletes it.
  def test_a_deleted_session_is_not_brought_back
    person = browser
    person.get
    slow = lambda do |env|
      env["rack.session"]["late"] = env["rack.session"]["seen"]
      Browser.new(app).tap { |same| same.cookie = person.cookie }.get("/drop")
      [200, {}, ["late"]]
    end
    late = Browser.new(Rack::Session::Hashmere.new(slow, store: @store))
    late.cookie = person.cookie
    capture_io { late.get }
    assert_empty @store
    assert_equal "1", person.get
  end

  def test_options
    person = browser(expire_after: 1000, prefix: "s:", coder: Marshal)
    person.get
    key = @store.keys.first
    assert key.start_with?("s:")
    assert_in_delta 1000, @store.ttl(key), 600
    assert_equal 1, Marshal.load(@store[key])["seen"]
    _, seconds = in_time(0.05) { |time| browser(ttl: time).get }
    sleep seconds + 0.05
    assert_equal 1, @store.count, "what expired is gone"
    named = "named-#{Process.pid}"
    session = Rack::Session::Hashmere.new(APPLICATION, store: named, store_options: { max_bytes: 8 << 20 })
    assert_equal 8 << 20, session.store.stats[:bytes_max]
    session.store.remove
    assert_raises(TypeError) { app(coder: 1) }
  end

  def test_processes_share_sessions
    person = browser
    person.get
    in_child { assert_equal "2", person.get }
    assert_equal "3", person.get
  end

  def test_rails
    controller = Class.new(ActionController::Base) do
      def self.name = "SitesController"
      def show
        session[:seen] = session[:seen].to_i + 1
        flash[:note] = "é" if session[:seen] == 1
        reset_session if params[:leave]
        render plain: "#{session[:seen]} #{flash[:note]}"
      end
    end
    routes = ActionDispatch::Routing::RouteSet.new
    routes.draw { get "/", to: controller.action(:show) }
    stack = ActionDispatch::Session::HashmereStore.new(ActionDispatch::Flash.new(routes), store: @store, key: "_site")
    stack = ActionDispatch::Cookies.new(stack)
    person = Browser.new(stack)
    assert_equal ["1 é", "2 é", "3 "], Array.new(3) { person.get }
    assert_match(/\A_site=/, person.cookie)
    before = person.cookie
    assert_equal " ", person.get("/?leave=1")
    assert_equal "1 é", person.get
    assert_equal "1 é", Browser.new(stack).tap { |old| old.cookie = before }.get
  end
end
