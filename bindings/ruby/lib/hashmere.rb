# frozen_string_literal: true

require "hashmere/hashmere_ext"
require_relative "hashmere/version"
require_relative "hashmere/attributes"
require_relative "hashmere/item"
require_relative "hashmere/store"
require_relative "hashmere/filter"
require_relative "hashmere/scans"
require_relative "hashmere/habits"
require_relative "hashmere/converting"
require_relative "hashmere/key"
require_relative "hashmere/coded"
require_relative "hashmere/transaction"
require_relative "hashmere/queue"
require_relative "hashmere/waiting"
require_relative "hashmere/atomic"
require_relative "hashmere/log"
require_relative "hashmere/feed"

# One hash table in one file that every process of a machine maps and reads and writes directly.
#
#   store = Hashmere.open("sessions")
#   store["user:7"] = "Ada"
#   store["user:7"] # => "Ada"
#
# Errors of the library are {Error} and one class for each code: `Full`, `Busy`, {Closed} and so on. Mistakes in a call are
# TypeError, ArgumentError and RangeError.
module Hashmere
  autoload :Logger, "hashmere/logger"

  # What the block of {Store#update} returns to remove the key.
  REMOVE = Object.new
  REMOVE.define_singleton_method(:inspect) { "Hashmere::REMOVE" }
  REMOVE.freeze

  # Opens a store, and creates it if it is missing. A *name* is a file in the namespace folder (HASHMERE_DIR, or else
  # /dev/shm/hashmere-<uid>); with a slash in it, or `.mere` at its end, it is a *path*. See {Store#initialize} for options.
  # With a block, it is closed behind the block, whose value is returned.
  def self.open(name, **options)
    store = Store.new(name, **options)
    return store unless block_given?

    begin
      yield store
    ensure
      store.close
    end
  end

  # The file that a name means, whether it exists or not.
  def self.path_of(name)
    _path_of(_name(name))
  end

  # Removes a store's file. Processes that have it open go on with the removed one.
  # @return [Boolean] whether there was one
  def self.remove(name)
    _remove(_name(name))
  end

  # What {Store#check} returns, of the store of a name, which is opened read-only for the call.
  def self.check(name)
    open(name, read_only: true, &:check)
  end

  # What {Store#stats} returns, of the store of a name, which is opened read-only for the call.
  def self.stats(name)
    open(name, read_only: true, &:stats)
  end

  # What {Store#backup} does, with the store of a name, which is opened for the call; none is created.
  def self.backup(name, path, replace: false)
    open(name, create: false) { |store| store.backup(path, replace: replace) }
  end

  # What {Store#dump} does, with the store of a name, which is opened read-only for the call.
  def self.dump(name, path, format: nil, **filter)
    open(name, read_only: true) { |store| store.dump(path, format: format, **filter) }
  end

  # What {Store#load} does, with the store of a name, which is opened for the call with these options of {Hashmere.open}, and created if it
  # is missing. A file that cannot be opened creates no store.
  def self.load(name, path, format: nil, **options)
    File.open(path, &:close)
    open(name, **options) { |store| store.load(path, format: format) }
  end

  # A key that can be nothing but bytes.
  # @private
  def self._text(key)
    string = key.is_a?(Symbol) ? key.name : String.try_convert(key)
    string or raise(TypeError, "a key in a call of several has to be a String or a Symbol, not #{key.class}")
  end

  # @private
  def self._name(name)
    name.respond_to?(:to_path) ? name.to_path : name
  end

  private_class_method :_path_of, :_remove
end
