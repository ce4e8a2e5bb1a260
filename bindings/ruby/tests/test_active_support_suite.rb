# frozen_string_literal: true

# ActiveSupport's own tests of what every cache store does, from the folder RAILS_TESTS (bindings/ruby/rails-tests fetches them). Left
# out are those that are for stores on a server (pools of connections, servers that fail), for a local cache in front of one, and for
# the autoloader.
require_relative "helper"
require "active_support"
require "active_support/test_case"
require "active_support/testing/autorun"
require "active_support/testing/method_call_assertions"
require "active_support/core_ext"
require "active_support/cache"
require "active_support/cache/hashmere_store"
require "logger"

folder = ENV.fetch("RAILS_TESTS", "")
if folder.empty?
  warn "ActiveSupport's own tests are not here: Debian's mirror could not be reached"
  exit
end
ActiveSupport::TestCase.test_order = :random
# What their abstract_unit has that they use.
class ActiveSupport::TestCase
  include ActiveSupport::Testing::MethodCallAssertions

  def assert_not(value, message = nil) = assert(!value, message || "Expected #{value.inspect} to be nil or false")
end
%w[cache_delete_matched cache_increment_decrement cache_instrumentation cache_store cache_store_version cache_store_coder
   encoded_key_cache].each { |name| require File.join(folder, "activesupport/test/cache/behaviors/#{name}_behavior") }

class HashmereStoreTest < ActiveSupport::TestCase
  include CacheStoreBehavior
  include CacheStoreVersionBehavior
  include CacheStoreCoderBehavior
  include CacheDeleteMatchedBehavior
  include CacheIncrementDecrementBehavior
  include CacheInstrumentationBehavior
  include EncodedKeyCacheBehavior

  setup do
    @name = "suite-#{Process.pid}-#{SecureRandom.hex(4)}"
    @namespace = "test-#{SecureRandom.hex}"
    @cache = lookup_store(expires_in: 60)
    @peek = lookup_store
  end

  teardown do
    [@cache, @peek].each { |cache| cache.store.close }
    Hashmere.remove(@name)
  end

  def lookup_store(options = {})
    ActiveSupport::Cache.lookup_store(:hashmere_store, @name, { namespace: @namespace, max_bytes: 32 << 20 }.merge(options))
  end
end
