"""The decoding sequences, in sums.

Every decoding sequence computes one row per step, so all that a step needs of them are counts and sums per tenant.
They change when somebody joins or leaves; a step that changes nothing costs the same for three riders as for three
hundred.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from heapq import heappop, heappush
from operator import attrgetter

from ..events import DecodeGroup, Tier
from .cell import CellKey
from .segment import Occupant
from .sequence import Sequence


class Group:
    """The decoding sequences of one tenant and tier."""

    __slots__ = ("blocks", "cell_key", "crossings", "occupant", "seen", "seqs")

    def __init__(self, tenant_id: str, tier: Tier, block_size: int) -> None:
        self.cell_key = CellKey("tenant", tenant_id, tier, "decode")
        self.seqs = 0
        self.seen = 0
        """Σ tokens that the coming step's rows look at, themselves included."""
        self.blocks = 0
        """KV blocks that they hold and that have no prefix id."""
        self.occupant = Occupant()
        """Their account of the other ones."""
        self.crossings = [0] * block_size
        """Sequences by the remainder (step number mod block size) at which they enter a new KV block."""


class Decoders:
    """All sequences whose prompt is computed and that generate one token per step.

    `step` is the number of the coming step. A sequence's last step is known when it joins.
    """

    def __init__(self, block_size: int, token_units: int) -> None:
        self.step = 0
        self.seqs = 0
        self.seen = 0
        self.active: list[Group] = []
        """Groups with somebody in them, by (tenant, tier)."""
        self._block_size = block_size
        self._token_units = token_units
        self._shared = 0
        self._groups: dict[tuple[str, Tier], Group] = {}
        self._crossings = [0] * block_size
        self._leaving: defaultdict[int, list[Sequence]] = defaultdict(list)
        self._last_steps: list[int] = []
        """A heap of all keys that `_leaving` has or had."""

    @property
    def blocks_needed(self) -> int:
        """KV blocks that the coming step's rows need beyond those held."""
        return self._crossings[self.step % self._block_size]

    def join(self, seq: Sequence) -> Occupant:
        """Take in a sequence that has sampled its newest token and will compute its row in the coming step.

        Returns the account of its group.
        """
        group = self._group(seq)
        if not group.seqs:
            insort(self.active, group, key=attrgetter("cell_key"))
        self._count(group, seq, 1)
        seq.decoding_in = self
        seq.joined_step = self.step
        seq.joined_shared = self._shared
        last = self._last_step(seq)
        if last not in self._leaving:
            heappush(self._last_steps, last)
        self._leaving[last].append(seq)
        return group.occupant

    def leave(self, seq: Sequence) -> None:
        """Settle a sequence and take it out, before its end or at it."""
        last = self._last_step(seq)
        if last >= self.step:
            self._leaving[last].remove(seq)
            if not self._leaving[last]:
                del self._leaving[last]
        self.settle(seq)
        seq.decoding_in = None
        group = self._group(seq)
        self._count(group, seq, -1)
        if not group.seqs:
            self.active.remove(group)

    def settle(self, seq: Sequence) -> None:
        """Bring a sequence's own numbers up to the coming step."""
        steps = self.step - seq.joined_step
        context = steps * (seq.num_computed + 1) + steps * (steps - 1) // 2
        seq.gpu_units += self._shared - seq.joined_shared + self._token_units * context
        seq.num_computed += steps
        seq.num_output += steps
        seq.blocks = -(-seq.num_computed // self._block_size)
        seq.joined_step = self.step
        seq.joined_shared = self._shared

    def generated(self, seq: Sequence) -> int:
        """Output tokens of a sequence so far, whether it decodes here or not."""
        return seq.num_output + (self.step - seq.joined_step if seq.decoding_in is self else 0)

    def blocks(self, seq: Sequence) -> int:
        """KV blocks of a sequence, with those of the coming step's row if it decodes here."""
        if seq.decoding_in is not self:
            return seq.blocks
        return -(-(seq.num_computed + self.step - seq.joined_step + 1) // self._block_size)

    def allocate(self, steps: int = 1) -> int:
        """Hand the blocks of the coming steps to those who need one; returns how many."""
        blocks = self._crossed(self._crossings, self.seqs, steps)
        if blocks:
            for group in self.active:
                group.blocks += self._crossed(group.crossings, group.seqs, steps)
        return blocks

    def advance(self, shared_units: int, steps: int = 1) -> list[Sequence]:
        """Let steps pass, at most up to the first that is somebody's last. Returns who got its last token.

        `shared_units` is what each row of a step owes of the time that all share.
        """
        self._shared += shared_units * steps
        self.seen += self.seqs * steps
        for group in self.active:
            group.seen += group.seqs * steps
        self.step += steps
        return self._leaving.pop(self.step - 1, [])

    def steps_alike(self, spare_blocks: int) -> int:
        """Coming steps up to the first that is somebody's last, as many as take at most `spare_blocks` KV blocks."""
        while self._last_steps[0] not in self._leaving:
            heappop(self._last_steps)
        steps = self._last_steps[0] - self.step + 1
        if self._crossed(self._crossings, self.seqs, steps) <= spare_blocks:
            return steps
        steps = spare_blocks // self.seqs * self._block_size
        while self._crossed(self._crossings, self.seqs, steps + 1) <= spare_blocks:
            steps += 1
        return steps

    def groups(self) -> tuple[DecodeGroup, ...]:
        """The groups as they enter the coming step."""
        now = self.step % self._block_size
        return tuple(
            DecodeGroup(
                group.cell_key.tenant_id,
                group.cell_key.tier,
                group.seqs,
                group.seen,
                group.blocks,
                group.occupant.parts,
                (*group.crossings[now:], *group.crossings[:now]),
            )
            for group in self.active
        )

    def _crossed(self, crossings: list[int], seqs: int, steps: int) -> int:
        """KV blocks that the coming steps add: each of `seqs` sequences enters a new one once in `block_size` steps."""
        size = self._block_size
        cycles, rest = divmod(steps, size)
        if not rest:
            return cycles * seqs
        first = self.step % size
        wrapped = max(0, first + rest - size)
        return cycles * seqs + sum(crossings[first : first + rest]) + sum(crossings[:wrapped])

    def _group(self, seq: Sequence) -> Group:
        key = (seq.arrival.tenant_id, seq.arrival.tier)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(*key, self._block_size)
        return group

    def _count(self, group: Group, seq: Sequence, sign: int) -> None:
        slot = (self.step - seq.num_computed) % self._block_size
        group.crossings[slot] += sign
        self._crossings[slot] += sign
        group.seqs += sign
        self.seqs += sign
        group.seen += sign * (seq.num_computed + 1)
        self.seen += sign * (seq.num_computed + 1)
        group.blocks += sign * seq.own_blocks

    @staticmethod
    def _last_step(seq: Sequence) -> int:
        return seq.joined_step + seq.target - seq.num_output - 1
