"""The inflow: a stream of arrivals as columns, read a block ahead."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice, pairwise
from typing import NamedTuple

import numpy as np

from ...events import Tier
from ...roofline.step_model import UNIT_BITS
from ..arrival import LATEST_NS, Arrival
from ..config import TIER_RANKS, EngineConfig
from .chunks import attention
from .decode_rows import Ints

LANES: dict[Tier, int] = {tier: rank - min(TIER_RANKS.values()) for tier, rank in TIER_RANKS.items()}
"""Who waits in front of whom."""
FAST, STANDARD, BATCH = LANES["fast"], LANES["standard"], LANES["batch"]
NEVER = LATEST_NS << 1
UNLIMITED = -1
_NO_LIMIT = (1 << 63) - 1
_BLOCK = 4096


class InflowColumns(NamedTuple):
    """What the columns of requests are made from, int64[arrivals]."""

    arrived_ns: Ints
    prompt: Ints
    target: Ints
    limit: Ints
    """`max_tokens`; UNLIMITED where there is none."""
    blocks: Ints
    group: Ints


class Inflow:
    """Arrivals, numbered in their order from 0; one list or column per property.

    Raises:
        ValueError: arrivals out of order, an id that comes twice, or an impossible length.
    """

    def __init__(self, config: EngineConfig, first: Arrival, rest: Iterator[Arrival]) -> None:
        self.ids: list[str] = []
        self.prefix_ids: list[tuple[int, ...] | None] = []
        self.arrived_ns: list[int] = []
        self.comes_at: list[int] = []
        """Clock units from the run's first arrival to each."""
        self.prompt: list[int] = []
        self.target: list[int] = []
        """Output tokens at which each is done."""
        self.blocks: list[int] = []
        """KV blocks that each holds at its end."""
        self.attention: list[int] = []
        """Clock units of attention that each whole prompt takes in one chunk."""
        self.lane: list[int] = []
        self.group: list[int] = []
        self.columns = InflowColumns(*(np.zeros(0, np.int64) for _ in InflowColumns._fields))
        self.aborts: dict[int, int] = {}
        """When those clients hang up who lose patience, UTC; of those who have not been taken."""
        self.groups: dict[tuple[str, Tier], int] = {}
        """Tenant and tier of each group."""
        self.lanes: set[int] = set()
        """Lanes of all so far."""
        self.has_batch = self.displaces = False
        """Whether there are requests of the tier `batch`, and fast ones too for which these are put off."""
        self.taken = 0
        """How many have been taken; the next one's number."""
        self.next_ns = NEVER
        """When the next one comes; NEVER: none does."""
        self._block_size = config.block_size
        self._model = config.step_model
        self._stream = chain([first], rest)
        self._base_ns = first.arrived_ns
        self._last = first
        self._calm_lane = -1
        self._read()

    def take(self) -> int:
        """The number of the next arrival."""
        number = self.taken
        self.taken = number + 1
        if self.taken < len(self.arrived_ns):
            self.next_ns = self.arrived_ns[self.taken]
        else:
            self._read()
        return number

    def names(self, numbers: list[int]) -> tuple[list[str], list[tuple[int, ...] | None]]:
        """Ids and prefix ids of requests that ended; they are forgotten, since nobody asks twice."""
        ids, prefix_ids = [self.ids[number] for number in numbers], [self.prefix_ids[number] for number in numbers]
        for number in numbers:
            self.ids[number], self.prefix_ids[number] = "", None
        return ids, prefix_ids

    def forget(self, count: int) -> None:
        """Forget the first `count` requests: those after them are numbered from 0 again."""
        for values in (self.ids, self.prefix_ids, self.arrived_ns, self.comes_at, self.prompt, self.target,
                       self.blocks, self.attention, self.lane, self.group):  # fmt: skip
            del values[:count]
        self.columns = InflowColumns(*(column[count:].copy() for column in self.columns))
        self.aborts = {number - count: at_ns for number, at_ns in self.aborts.items()}
        self.taken -= count

    def skip_to(self, number: int) -> None:
        """All before `number`, which is read already, have been taken."""
        if number > self.taken:
            self.taken, self.next_ns = number, self.arrived_ns[number]

    def overtaking_ns(self, lane: int) -> int:
        """When somebody may come who does more than wait behind a head in `lane`: overtakes it, or hangs up."""
        return self.next_ns if self.next_ns == NEVER or lane > self._calm_lane else self._last.arrived_ns

    def _read(self) -> None:
        block = list(islice(self._stream, _BLOCK))
        if not block:
            self.next_ns = NEVER
            return
        ids, tenants, tiers, arrived_ns, prompts, outputs, limits, prefix_ids, aborts, _ = zip(*block, strict=True)
        arrived, prompt, output = (np.array(column, np.int64) for column in (arrived_ns, prompts, outputs))
        limit = np.array([_NO_LIMIT if limit is None else limit for limit in limits], np.int64)
        target = np.minimum(output, limit)
        if (np.diff(arrived, prepend=self._last.arrived_ns) < 0).any():
            before, after = next(two for two in pairwise([self._last, *block]) if two[1].arrived_ns < two[0].arrived_ns)
            raise ValueError(f"request {after.request_id} arrives before {before.request_id} that came first")
        self._last = block[-1]
        if len(set(ids)) < len(ids):
            raise ValueError("a request comes twice: ids are unique within a run")
        if prompt.min() < 1 or target.min() < 0:
            raise ValueError("a request needs a prompt of at least one token and no negative length")
        restless = {number: at for number, at in enumerate(aborts, len(self.ids)) if at is not None}
        self.aborts |= restless
        self.ids += ids
        self.prefix_ids += prefix_ids
        self.arrived_ns += arrived_ns
        self.comes_at += [(at - self._base_ns) << UNIT_BITS for at in arrived_ns]
        groups = list(zip(tenants, tiers, strict=True))
        for group in dict.fromkeys(groups):
            self.groups.setdefault(group, len(self.groups))
        group = list(map(self.groups.__getitem__, groups))
        lanes = list(map(LANES.__getitem__, tiers))
        self.group += group
        self.lane += lanes
        self.lanes.update(lanes)
        self.has_batch, self.displaces = BATCH in self.lanes, self.lanes >= {BATCH, FAST}
        blocks = -(-(prompt + target) // self._block_size)
        self.prompt += prompts
        self.target += target.tolist()
        self.blocks += blocks.tolist()
        self.attention += attention(self._model, prompt, np.zeros_like(prompt)).tolist()
        limit[limit == _NO_LIMIT] = UNLIMITED
        more = (arrived, prompt, target, limit, blocks, np.array(group, np.int64))
        self.columns = InflowColumns(*map(np.append, self.columns, more))
        self.next_ns = arrived_ns[0]
        self._calm_lane = -1 if restless else min(lanes)
