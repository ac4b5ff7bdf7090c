"""The decoders of the jump engine: a count, a sum of origins, and a heap of last steps."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from operator import mul

import numpy as np

from ...roofline.step_model import StepModel

RIDE_BITS = 40
RIDE = (1 << RIDE_BITS) - 1
_NOBODY = RIDE << RIDE_BITS
_ROWS = 1 << 10
_UNKNOWN = (-1, 0)


Ride = tuple[int, int, int, int]
"""A request's number, the step in which it begins to decode, its origin, and the step after its last.

In step t it looks at t − origin tokens, itself included.
"""


class Decodes:
    """Everybody who generates one token per step, in sums: what a step costs does not depend on how many they are.

    All n of them look at n·t − Σ origin tokens in step t. `base` lists what a step of so many rows costs without its
    attention, in clock units, as far as `price` was asked.
    """

    def __init__(self, model: StepModel, block_size: int) -> None:
        self.n = 0
        self.origins = 0
        self.rides: dict[int, Ride] = {}
        """Who decodes, by number of the ride in its segment, in the order of boarding."""
        self.due = [_NOBODY]
        """A heap of end and number, above NOBODY's; numbers of those who left early stay in it."""
        self.next = 0
        """The next ride's number."""
        self.base: list[int] = []
        self.token_units = model.attention(1, 0)
        self._model = model
        self._block_size = block_size
        self.price(_ROWS)
        self._crossings: list[int] | None = None
        """Decoders by the remainder (step mod block size) at which they enter a new KV block; None: to be counted."""
        self._held = _UNKNOWN
        """What `held` answered last, and for which step."""

    @property
    def next_end(self) -> int:
        """The first step that somebody is not in any more."""
        due, rides = self.due, self.rides
        while due[0] & RIDE not in rides:
            heappop(due)
        return due[0] >> RIDE_BITS

    def held(self, step: int) -> int:
        """KV blocks held before a step allocates its own, if nobody joins or leaves until then."""
        if self._held[0] == step:
            return self._held[1]
        size = self._block_size
        if self._crossings is None:
            self._crossings = [0] * size
            for ride in self.rides.values():
                self._crossings[(ride[2] + 1) % size] += 1
        now = step % size
        free_slots = sum(map(mul, self._crossings[now:] + self._crossings[:now], range(size)))
        held = (self.n * (step - 1) - self.origins + free_slots) // size
        self._held = step, held
        return held

    def change(self, n: int, origins: int, following: int) -> None:
        """Take note of sums and of the next number, after `rides` and `due` were changed from outside."""
        self.n, self.origins, self.next = n, origins, following
        self._held = _UNKNOWN
        self._crossings = None

    def join(self, ride: Ride) -> None:
        """Take in a rider for the coming step."""
        heappush(self.due, ride[3] << RIDE_BITS | self.next)
        self.rides[self.next] = ride
        self.next += 1
        self.n += 1
        self.origins += ride[2]
        self._held = _UNKNOWN
        if self._crossings is not None:
            self._crossings[(ride[2] + 1) % self._block_size] += 1
        if self.n >= len(self.base):
            self.price(self.n)

    def leave(self, number: int) -> Ride:
        """Take out a rider whose row the coming step no longer has."""
        ride = self.rides.pop(number)
        self.n -= 1
        self.origins -= ride[2]
        self._held = _UNKNOWN
        if self._crossings is not None:
            self._crossings[(ride[2] + 1) % self._block_size] -= 1
        return ride

    def price(self, rows: int) -> None:
        """Extend `base` up to `rows` rows, and beyond, for the next time."""
        known = len(self.base)
        more = np.arange(known, max(rows + 1, 2 * known))
        self.base += self._model.step_column(more).tolist()

    def renumber_requests(self, less: int) -> None:
        """Requests have smaller numbers by `less` from now on."""
        self.rides = {number: (ride[0] - less, *ride[1:]) for number, ride in self.rides.items()}

    def renumber(self, step: int) -> list[Ride]:
        """Number the rides from 0 again, as of `step`; returns them."""
        rides = [(request, step, origin, end) for request, _, origin, end in self.rides.values()]
        self.rides = dict(enumerate(rides))
        self.due = [_NOBODY, *(ride[3] << RIDE_BITS | number for number, ride in self.rides.items())]
        heapify(self.due)
        self.next = len(rides)
        return rides
