"""Riders: requests that decode one row per step, in sums per tenant, so that a step costs the same for any number."""

from __future__ import annotations

from typing import TypeAlias

from .ride import Ride

Decodes: TypeAlias = "tuple[Group, int, int, int, int]"
"""Decoders of a group in a step: how many, their rows, the positions that these read, the blocks that they fill."""


class Group:
    """The decoders of one tenant and tier.

    `due[r]` counts those whose `base` is r modulo the block size: the ones that begin a new block in the same step.
    """

    __slots__ = ("__weakref__", "attended", "blocks", "due", "seqs", "tenant_id", "tier")

    def __init__(self, tenant_id: str, tier: str, block_size: int) -> None:
        self.tenant_id = tenant_id
        self.tier = tier
        self.seqs = self.attended = self.blocks = 0
        self.due = [0] * block_size


class Riders:
    """All steady decoders. Those who get on or off cost a moment; a step costs one addition or two per group."""

    def __init__(self, block_size: int) -> None:
        self.members: dict[str, Ride] = {}
        self._block_size = block_size
        self._ticks = 0
        self._active: dict[Group, None] = {}

    def join(self, request_id: str, ride: Ride, position: int) -> None:
        """Take a rider on whose next row is at `position`."""
        group, base = ride.group, position - self._ticks
        ride.base = base
        self.members[request_id] = ride
        group.seqs += 1
        group.attended += position + 1
        group.blocks += position // self._block_size + 1
        group.due[base % self._block_size] += 1
        self._active[group] = None

    def leave(self, request_id: str) -> int:
        """Let a rider go; gives the position of what would have been its next row."""
        ride = self.members.pop(request_id)
        group, base = ride.group, ride.base
        if base is None:
            raise RuntimeError(f"{request_id} is listed as a rider and is none")
        position = base + self._ticks
        ride.base = None
        group.seqs -= 1
        group.attended -= position + 1
        group.blocks -= position // self._block_size + 1
        group.due[base % self._block_size] -= 1
        if not group.seqs:
            del self._active[group]
        return position

    def step(self) -> list[Decodes]:
        """One row of everybody."""
        self._ticks += 1
        due = -self._ticks % self._block_size
        cells: list[Decodes] = []
        for group in self._active:
            seqs = group.seqs
            cells.append((group, seqs, seqs, group.attended, group.blocks))
            group.attended += seqs
            group.blocks += group.due[due]
        return cells
