# frozen_string_literal: true

require "hashmere"

module Hashmere
  # What sessions of Rack and Rails in a store have in common. The store is strict: a session lives until it expires or is deleted, and is
  # never dropped to make room. The file has a digest of a session's id (Rack's private id), not the id.
  #
  # Options beside those of every session store of Rack:
  #
  # - `store`: a {Store}, or a name or path as for {Hashmere.open}
  # - `store_options`: options of {Hashmere.open}
  # - `expire_after`: seconds since the last request after which a session ends, in the browser and in the store. Without it the
  #   browser ends it when it is closed, the store after `ttl`.
  # - `ttl`: 14 days without it
  # - `coder`: JSON without it, so that values come back as JSON knows them and no class of the reader is created. Marshal takes more
  #   objects; a process that may write the file may then run code in its readers.
  # - `prefix` of the keys: `session:` without it
  #
  # A session that one request deletes is not brought back by another that has it loaded: the latter's changes are dropped, as Rack
  # does it. Of two requests that change a session at once, the later one wins.
  module Sessions
    DEFAULT_TTL = 14 * 24 * 3600
    OWN = { store: nil, store_options: {}, ttl: DEFAULT_TTL, coder: JSONCoder, prefix: "session:" }.freeze
    # In the environment of a request: the id of a session that is not stored yet.
    NEW = "hashmere.session.new"
    private_constant :OWN, :NEW

    # @return [Hashmere::Store]
    attr_reader :store

    def initialize(app, options = {})
      own = OWN.merge(options.slice(*OWN.keys))
      own[:store] ||= self.class::NAME
      @store = own[:store].is_a?(Store) ? own[:store] : Hashmere.open(own[:store], **own[:store_options])
      @sessions = @store.coded(own[:coder])
      @ttl = own[:ttl]
      @prefix = own[:prefix]
      super(app, options.except(*OWN.keys))
    end

    # An id that the browser made up, or that has expired, is not taken over: the session gets a new one.
    def find_session(request, id)
      session = id && @sessions[record_of(id)]
      session ? [id, session] : [new_id(request), {}]
    end

    def write_session(request, id, session, options)
      return delete_session(request, id, options) if session.nil?

      put = request.get_header(NEW) == id.private_id ? :add : :replace
      stored = @sessions.public_send(put, record_of(id), session.to_hash, ttl: (options[:expire_after] || @ttl).to_f)
      return false unless stored

      # Whatever this request writes from here on is a change.
      request.delete_header(NEW)
      id
    end

    def delete_session(request, id, options)
      @store.delete?(record_of(id))
      new_id(request) unless options[:drop]
    end

    private

    def record_of(id)
      "#{@prefix}#{id.private_id}"
    end

    def new_id(request)
      generate_sid.tap { |id| request.set_header(NEW, id.private_id) }
    end
  end
end
