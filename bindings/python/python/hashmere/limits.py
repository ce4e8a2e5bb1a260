"""Rate limiters that all processes of a machine share.

    from hashmere.limits import SlidingWindow, TokenBucket

    requests = TokenBucket(store, rate=100, burst=200)
    decision = requests.take(client)
    if not decision:
        ...  # try again in decision.retry_after seconds

A call is one `Store.update_with`: the calls of all processes for a key have an order, and one that is killed has taken or has not.
Nothing runs in the background. The values have the same form in Ruby, so both languages may use a key. In a cache a key may be
evicted; its client begins again.
"""

from __future__ import annotations

import math
import time
from datetime import timedelta
from typing import Any, Callable, List, NamedTuple, Optional, Tuple, Union

from ._store import Store, Text
from ._types import KEEP, Verdict

_SECOND = 1_000_000_000
_MILLISECOND = 1_000_000
_SLOTS = 60
_RATE_MAX = 1_000_000


class Decision(NamedTuple):
    """What a limiter decides. It is true if it is allowed."""

    allowed: bool
    remaining: int
    """How much more is allowed at this moment."""
    retry_after: float
    """Seconds after which as much is allowed, if nothing else is taken; 0 if it is."""
    reset_after: float
    """Seconds after which the key is as if it had never been used, if nothing else is taken."""

    def __bool__(self) -> bool:
        return self.allowed


class _Limiter:
    """Keys and clock; what a value means is the kind's. Times are nanoseconds."""

    def __init__(self, store: Store, most: int, kept: int, prefix: Text, clock: Callable[[], int]) -> None:
        self._store, self._most, self._clock = store, most, clock
        # A record expires at a whole millisecond, and is not to do so early.
        self._ttl = (kept + _MILLISECOND) / _SECOND
        self._prefix = _bytes(prefix)

    def _load(self, value: Optional[bytes], now: int) -> Tuple[Any, bool]:
        """The state of a key, and whether it comes from a time ahead, so that the clock was set back; `ValueError` if the value is not
        a state."""
        raise NotImplementedError

    def _dump(self, state: Any) -> bytes:
        raise NotImplementedError

    def _wait(self, state: Any, cost: int, now: int) -> int:
        """How long until so much is allowed."""
        raise NotImplementedError

    def _add(self, state: Any, cost: int) -> Any:
        raise NotImplementedError

    def _free(self, state: Any, now: int) -> int:
        raise NotImplementedError

    def _reset(self, state: Any, now: int) -> int:
        raise NotImplementedError

    def _decide(self, key: bytes, value: Optional[bytes], cost: int, take: bool) -> Tuple[Decision, Optional[bytes]]:
        """The decision, and the new value, if there is one."""
        now = self._clock()
        try:
            state, ahead = self._load(value, now)
        except ValueError:
            raise ValueError(f"the value of {key!r} is not that of a {type(self).__name__}: choose another prefix") from None
        wait = self._wait(state, cost, now)
        if take and wait == 0:
            state = self._add(state, cost)
        decision = Decision(wait == 0, self._free(state, now), wait / _SECOND, self._reset(state, now) / _SECOND)
        # A state from ahead is brought back also if this is refused: else it would be ahead until the clock has caught up.
        return decision, self._dump(state) if take and (wait == 0 or ahead) else None

    def take(self, key: Text, cost: int = 1) -> Decision:
        """Takes ``cost`` if it is allowed; otherwise it changes nothing. A cost below 1, or one that never is allowed, is a
        `ValueError`, as is a key that is used for something else."""
        if not 1 <= cost <= self._most:
            raise ValueError(f"a cost of {cost} is never allowed: it has to be from 1 to {self._most}")
        name = self._prefix + _bytes(key)
        decision: Any = None

        def change(value: Optional[bytes]) -> Union[bytes, Verdict]:
            nonlocal decision
            decision, after = self._decide(name, value, cost, True)
            return KEEP if after is None else after

        self._store.update_with(name, change, ttl=self._ttl)
        return decision  # type: ignore[no-any-return]

    def peek(self, key: Text, cost: int = 1) -> Decision:
        """Whether ``cost`` is allowed. It takes nothing."""
        name = self._prefix + _bytes(key)
        return self._decide(name, self._store.get(name), cost, False)[0]

    def reset(self, key: Text) -> None:
        """Forgets what was taken."""
        self._store.delete(self._prefix + _bytes(key))


class TokenBucket(_Limiter):
    """``rate`` a second in the long run (above 0, at most a million), ``burst`` at once (1 or more): at most
    ``burst + rate * t`` in any ``t`` seconds.

    It is the generic cell rate algorithm of ITU-T I.371. A value is the nanosecond of 1970 at which the bucket is full again, in
    decimal. All who use a key give the same numbers."""

    def __init__(
        self, store: Store, *, rate: float, burst: int, prefix: Text = "limit:", clock: Callable[[], int] = time.time_ns
    ) -> None:
        if not 0 < rate <= _RATE_MAX:
            raise ValueError(f"rate has to be above 0 and at most {_RATE_MAX}, not {rate}")
        if burst < 1:
            raise ValueError(f"burst has to be at least 1, not {burst}")
        self._token = math.ceil(_SECOND / rate)
        self._capacity = burst * self._token
        super().__init__(store, burst, self._capacity, prefix, clock)

    def _load(self, value: Optional[bytes], now: int) -> Tuple[int, bool]:
        full = now if value is None else max(_number(value), now)
        empty = now + self._capacity
        return min(full, empty), full > empty

    def _dump(self, state: int) -> bytes:
        return b"%d" % state

    def _wait(self, state: int, cost: int, now: int) -> int:
        return max(state + cost * self._token - now - self._capacity, 0)

    def _add(self, state: int, cost: int) -> int:
        return state + cost * self._token

    def _free(self, state: int, now: int) -> int:
        return (now + self._capacity - state) // self._token

    def _reset(self, state: int, now: int) -> int:
        return state - now


class SlidingWindow(_Limiter):
    """At most ``limit`` (1 or more) in any ``period`` of seconds (a millisecond or more), wherever it begins. What was taken counts
    until it is as old as ``period``, and at most a 60th of it longer.

    Time is cut into slots of a 60th of ``period``, counted from 1970. A value is the number of the newest slot in which something was
    taken, what was taken in it, in the one before, and so on, separated by spaces. All who use a key give the same numbers."""

    def __init__(
        self, store: Store, *, limit: int, period: Union[float, timedelta], prefix: Text = "limit:", clock: Callable[[], int] = time.time_ns
    ) -> None:
        if limit < 1:
            raise ValueError(f"limit has to be at least 1, not {limit}")
        seconds = float(period.total_seconds() if isinstance(period, timedelta) else period)
        if not 0.001 <= seconds < math.inf:
            raise ValueError(f"period has to be at least a millisecond, not {period}")
        self._slot = math.ceil(seconds * _SECOND / _SLOTS)
        super().__init__(store, limit, (_SLOTS + 1) * self._slot, prefix, clock)

    # A state is the present slot, and what was taken in it, in the one before, and so on.
    def _load(self, value: Optional[bytes], now: int) -> Tuple[Tuple[int, List[int]], bool]:
        present = now // self._slot
        if value is None:
            return (present, [0]), False
        newest, *taken = map(_number, value.split(b" "))
        if not taken:
            raise ValueError
        # What a clock that was set back took in slots to come is taken now.
        early = max(newest - present, 0)
        taken = [sum(taken[: early + 1]), *taken[early + 1 :]]
        return (present, ([0] * min(max(present - newest, 0), _SLOTS + 1) + taken)[: _SLOTS + 1]), early > 0

    def _dump(self, state: Tuple[int, List[int]]) -> bytes:
        present, taken = state
        while len(taken) > 1 and not taken[-1]:
            taken.pop()
        return b" ".join(b"%d" % number for number in (present, *taken))

    def _wait(self, state: Tuple[int, List[int]], cost: int, now: int) -> int:
        total = sum(state[1]) + cost - self._most
        if total <= 0:
            return 0
        for age in reversed(range(len(state[1]))):
            total -= state[1][age]
            if total <= 0:
                return self._leaves(state[0] - age, now)
        return self._leaves(state[0], now)

    def _leaves(self, slot: int, now: int) -> int:
        """How long until a slot does not count."""
        return (slot + _SLOTS + 1) * self._slot - now

    def _add(self, state: Tuple[int, List[int]], cost: int) -> Tuple[int, List[int]]:
        present, taken = state
        return present, [taken[0] + cost, *taken[1:]]

    def _free(self, state: Tuple[int, List[int]], now: int) -> int:
        return max(self._most - sum(state[1]), 0)

    def _reset(self, state: Tuple[int, List[int]], now: int) -> int:
        present, taken = state
        age = next((age for age, number in enumerate(taken) if number), None)
        return 0 if age is None else self._leaves(present - age, now)


def _bytes(text: Text) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


def _number(text: bytes) -> int:
    # More than `int` takes, such as a sign or an underscore, is no value of ours.
    if not text.isdigit():
        raise ValueError
    return int(text)


__all__ = ["Decision", "SlidingWindow", "TokenBucket"]
