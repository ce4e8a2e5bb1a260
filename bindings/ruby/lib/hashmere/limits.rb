# frozen_string_literal: true

require "hashmere"

module Hashmere
  # What a limiter decides.
  #
  # - `allowed?`
  # - `remaining`: how much more is allowed at this moment
  # - `retry_after`: seconds after which as much is allowed, if nothing else is taken; 0 if it is
  # - `reset_after`: seconds after which the key is as if it had never been used, if nothing else is taken
  Decision = Struct.new(:allowed, :remaining, :retry_after, :reset_after) do
    alias_method :allowed?, :allowed
  end

  # What both rate limiters have in common: keys and clock. Times are nanoseconds.
  #
  # A call is one {Store#update_with}: the calls of all processes for a key have an order, and one that is killed has taken or has
  # not. Nothing runs in the background. The values have the same form in Python, so both languages may use a key. In a cache a
  # key may be evicted; its client begins again.
  class Limiter
    SECOND = 1_000_000_000
    MILLISECOND = 1_000_000
    # The machine's clock, in nanoseconds since 1970.
    CLOCK = -> { Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond) }
    private_constant :SECOND, :MILLISECOND

    # @private
    def initialize(store, most, kept, prefix, clock)
      @store = store
      @most = most
      # A record expires at a whole millisecond, and is not to do so early.
      @ttl = (kept + MILLISECOND).fdiv(SECOND)
      @prefix = prefix
      @clock = clock
    end

    # Takes `cost` if it is allowed; otherwise it changes nothing. A cost below 1, or one that never is allowed, is an ArgumentError,
    # as is a key that is used for something else.
    # @return [Decision]
    def take(key, cost = 1)
      unless cost.is_a?(Integer) && cost.between?(1, @most)
        raise ArgumentError, "a cost of #{cost} is never allowed: it has to be from 1 to #{@most}"
      end

      decision = nil
      name = name_of(key)
      @store.update_with(name, ttl: @ttl) do |value|
        decision, after = decide(name, value, cost, true)
        after
      end
      decision
    end

    # Whether `cost` is allowed. It takes nothing.
    # @return [Decision]
    def peek(key, cost = 1)
      name = name_of(key)
      decide(name, @store[name], cost, false).first
    end

    # Forgets what was taken.
    def reset(key)
      @store.delete?(name_of(key))
      nil
    end

    private

    def name_of(key)
      "#{@prefix}".b << key.to_s.b
    end

    # The decision, and the new value, if there is one.
    def decide(name, value, cost, take)
      now = @clock.call
      state, ahead = load(value, now)
      unless state
        raise ArgumentError, "the value of #{name.inspect} is not that of a #{self.class.name}: choose another prefix"
      end

      wait = wait(state, cost, now)
      state = add(state, cost) if take && wait.zero?
      decision = Decision.new(wait.zero?, free(state, now), wait.fdiv(SECOND), reset_in(state, now).fdiv(SECOND))
      # A state from ahead is brought back also if this is refused: else it would be ahead until the clock has caught up.
      [decision, (dump(state) if take && (wait.zero? || ahead))]
    end
  end

  # `rate` a second in the long run (above 0, at most a million), `burst` at once (1 or more): at most `burst + rate * t` in any `t`
  # seconds.
  #
  #   requests = Hashmere::TokenBucket.new(store, rate: 100, burst: 200)
  #   decision = requests.take(client)
  #   decision.allowed? or return too_many_requests(decision.retry_after)
  #
  # It is the generic cell rate algorithm of ITU-T I.371. A value is the nanosecond of 1970 at which the bucket is full again, in
  # decimal. All who use a key give the same numbers.
  class TokenBucket < Limiter
    RATE_MAX = 1_000_000
    private_constant :RATE_MAX

    def initialize(store, rate:, burst:, prefix: "limit:", clock: CLOCK)
      raise ArgumentError, "rate has to be above 0 and at most #{RATE_MAX}, not #{rate}" unless rate.positive? && rate <= RATE_MAX
      raise ArgumentError, "burst has to be an Integer of at least 1, not #{burst}" unless burst.is_a?(Integer) && burst >= 1

      @token = SECOND.fdiv(rate).ceil
      @capacity = burst * @token
      super(store, burst, @capacity, prefix, clock)
    end

    private

    # The state, and whether it comes from a time ahead, so that the clock was set back; nil: the value is no state.
    def load(value, now)
      return [now, false] if value.nil?
      return unless value.match?(/\A\d+\z/)

      full = Integer(value, 10)
      empty = now + @capacity
      [full.clamp(now, empty), full > empty]
    end

    def dump(state)
      state.to_s
    end

    def wait(state, cost, now)
      [state + cost * @token - now - @capacity, 0].max
    end

    def add(state, cost)
      state + cost * @token
    end

    def free(state, now)
      (now + @capacity - state) / @token
    end

    def reset_in(state, now)
      state - now
    end
  end

  # At most `limit` (1 or more) in any `period` of seconds (a millisecond or more), wherever it begins. What was taken counts until it
  # is as old as `period`, and at most a 60th of it longer.
  #
  #   logins = Hashmere::SlidingWindow.new(store, limit: 5, period: 60)
  #
  # Time is cut into slots of a 60th of `period`, counted from 1970. A value is the number of the newest slot in which something was
  # taken, what was taken in it, in the one before, and so on, separated by spaces. All who use a key give the same numbers.
  class SlidingWindow < Limiter
    SLOTS = 60
    private_constant :SLOTS

    def initialize(store, limit:, period:, prefix: "limit:", clock: CLOCK)
      raise ArgumentError, "limit has to be an Integer of at least 1, not #{limit}" unless limit.is_a?(Integer) && limit >= 1
      raise ArgumentError, "period has to be at least a millisecond, not #{period}" unless period >= 0.001 && period.to_f.finite?

      @slot = (period.to_f * SECOND).fdiv(SLOTS).ceil
      super(store, limit, (SLOTS + 1) * @slot, prefix, clock)
    end

    private

    # As above. A state is the present slot, and what was taken in it, in the one before, and so on.
    def load(value, now)
      present = now / @slot
      return [[present, [0]], false] if value.nil?
      return unless value.match?(/\A\d+( \d+)+\z/)

      newest, *taken = value.split.map(&:to_i)
      # What a clock that was set back took in slots to come is taken now.
      early = [newest - present, 0].max
      taken = [taken.first(early + 1).sum, *taken.drop(early + 1)]
      [[present, ([0] * (present - newest).clamp(0, SLOTS + 1) + taken).first(SLOTS + 1)], early.positive?]
    end

    def dump((present, taken))
      last = taken.rindex(&:positive?) || 0
      [present, *taken[..last]].join(" ")
    end

    def wait((present, taken), cost, now)
      over = taken.sum + cost - @most
      return 0 unless over.positive?

      age = taken.size
      while over.positive? && age.positive?
        age -= 1
        over -= taken[age]
      end
      leaves(present - age, now)
    end

    # How long until a slot does not count.
    def leaves(slot, now)
      (slot + SLOTS + 1) * @slot - now
    end

    def add((present, taken), cost)
      [present, [taken.first + cost, *taken.drop(1)]]
    end

    def free((_, taken), _now)
      [@most - taken.sum, 0].max
    end

    def reset_in((present, taken), now)
      age = taken.index(&:positive?)
      age ? leaves(present - age, now) : 0
    end
  end
end
