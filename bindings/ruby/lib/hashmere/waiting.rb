# frozen_string_literal: true

module Hashmere
  # Waiting for each other. A process that crashes is noticed. Other Ruby threads run during a wait, and signals are handled.
  class Store
    # As of the library in every language.
    LEASE = "\0once\0"
    private_constant :LEASE

    # Waits until a key has another version than `seen` (nil: it was absent), in whatever process it is changed.
    # @param timeout [Numeric, nil] seconds; nil: no limit
    # @return [Integer, :removed, nil] its version then; `:removed`: it is absent; nil: it did not change within the time
    def wait(key, seen, timeout:)
      _wait(key, seen || 0, Attributes.timeout_ms(timeout))
    end

    # Waits until one of several keys has another version than was seen.
    #
    #   store.wait_any({ "jobs" => store.version("jobs"), "stop" => nil }, timeout: 10) # => ["jobs", 17]
    # @param seen [Hash] keys, and the version that each had (nil: it was absent)
    # @return [Array(String, Integer), Array(String, :removed), nil] the first of them that has changed, and its version then; nil: none
    #   changed within the time
    def wait_any(seen, timeout:)
      keys = seen.to_h.keys
      which, version = _wait_any(keys, seen.to_h.values.map { |one| one || 0 }, Attributes.timeout_ms(timeout))
      which && [keys[which], version]
    end

    # Runs the block while it holds the mutex of a key, which says by whom it is held and is otherwise absent. The death of the holder
    # releases it. The block is called with whether the holder before crashed with it: what it protects may be half done.
    # It stays held when the store is cleared. A thread that holds it cannot lock it again: `QueueReentered` is raised.
    # @param timeout [Numeric, nil] seconds; 0: only if it is free; nil: no limit
    # @return what the block returns; `Busy` is raised if a living process held it all the while
    def lock(key, timeout: 5)
      held(key, timeout, "the mutex #{key.inspect} was held", -> { mutex_holder(key) }) { |abandoned| yield abandoned }
    end

    # Runs the block while it holds the readers-writer lock of a key for reading, beside other readers. While it is held the key says by whom,
    # else it is absent. The death of a holder releases what it held. The block is called with whether a writer died with it and no other
    # writer had it since: what it protects may be half done. It stays held when the store is cleared. Not recursive, in no combination of
    # reading and writing: `QueueReentered` is raised. Who has to wait competes for its turn, in which no reader or writer that comes later
    # passes it.
    # @param timeout [Numeric, nil] seconds; 0: only if it is to be had at once; nil: no limit
    # @return what the block returns; `Busy` is raised if living processes kept it all the while
    def read_lock(key, timeout: 5, &block)
      rwlocked(key, false, timeout, &block)
    end

    # The same for writing, alone.
    def write_lock(key, timeout: 5, &block)
      rwlocked(key, true, timeout, &block)
    end

    # Runs the block while it holds one of the `permits` (1 to 1024) of the semaphore of a key. All who use it give the same number. While
    # there are holders the key names them, else it is absent. The death of a holder gives its permit back. The block is called with whether
    # one died with its permit since the last one was taken. Permits stay held when the store is cleared. Not fair. A thread may hold
    # several; one that holds all of them gets `QueueReentered`.
    # @param timeout [Numeric, nil] seconds; 0: only if one is free; nil: no limit
    # @return what the block returns; `Busy` is raised if living processes held all of them all the while
    def semaphore(key, permits, timeout: 5)
      guard, abandoned = _semaphore(key, permits, Attributes.timeout_ms(timeout))
      busy("the permits of the semaphore #{key.inspect} were held", semaphore_holders(key), timeout) unless guard
      begin
        yield abandoned
      ensure
        guard.release
      end
    end

    # The value of a key; if there is none, the block makes it, in one process at a time, and it is stored. The others wait. If the one
    # that computes dies or raises, the next one does it. If it asks for the value of the same key itself, `QueueReentered` is raised.
    # @return the value; `Busy` is raised if a living process was computing all the while
    def once(key, timeout: 5)
      value = self[key]
      return value unless value.nil?

      computing(key) do
        held(LEASE.b + key.to_s.b, timeout, "the value of #{key.inspect} was being computed", -> { once_holder(key) }) do
          value = self[key]
          return value unless value.nil?

          self[key] = yield
          self[key]
        end
      end
    end

    private

    def rwlocked(key, writes, timeout)
      guard, abandoned = _rwlock(key, writes, Attributes.timeout_ms(timeout))
      busy("the readers-writer lock #{key.inspect} was held", [rwlock_writer(key), *rwlock_readers(key)].compact, timeout) unless guard
      begin
        yield abandoned
      ensure
        guard.release
      end
    end

    def busy(what, pids, timeout)
      by = pids.empty? ? "some that are gone by now, or whose names went when the store was cleared" : "process #{pids.uniq.join(", ")}"
      error = Busy.new("#{what} by #{by} for #{timeout} s; give it more time, or look what holds it up")
      error.instance_variable_set(:@pid, pids.first)
      raise error
    end

    def held(key, timeout, what, holder)
      held, abandoned = _lock(key, Attributes.timeout_ms(timeout))
      unless held
        pid = holder.call
        by = case pid
             when nil then "one that is gone by now"
             when 0 then "one whose name went when the store was cleared"
             else "process #{pid}"
             end
        error = Busy.new("#{what} by #{by} for #{timeout} s; give it more time, or look what holds it up")
        error.instance_variable_set(:@pid, pid)
        raise error
      end
      begin
        yield abandoned
      ensure
        held.release
      end
    end

    # A thread that waits for itself would wait forever. A fiber blocks its thread while it waits, so this is the thread's.
    def computing(key)
      own = [Process.pid, path, key.to_s.b]
      all = Thread.current.thread_variable_get(:hashmere_once) || []
      if all.include?(own)
        raise QueueReentered, "`once` of #{key.inspect} was called by this thread, which is computing the value of that key; return it from there"
      end
      Thread.current.thread_variable_set(:hashmere_once, all + [own])
      yield
    ensure
      Thread.current.thread_variable_set(:hashmere_once, (Thread.current.thread_variable_get(:hashmere_once) || []) - [own]) unless all&.include?(own)
    end
  end

  # A participant of a barrier between processes, at a key of a store: they start together, again and again; crashed processes are not waited for.
  class Barrier
    # Joins as one of `size` participants; the first to come makes it.
    def self.join(store, key, size)
      _join(store, key, size)
    end

    # Arrives, and waits for all others. @return [Array(Integer, Integer), nil] the number of the round from 1, and how many had died or left
    #   by then; nil: a living process has not arrived yet
    def wait(timeout:)
      _wait(Attributes.timeout_ms(timeout))
    end

    private_class_method :_join
  end
end
