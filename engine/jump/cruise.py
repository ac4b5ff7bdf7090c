"""Cruising: the simplest stretch of a run, in which everybody boards at once with the whole prompt, and fits."""

from __future__ import annotations

from heapq import heappop, heappush
from math import sqrt
from typing import NamedTuple

from ...roofline.step_model import UNIT_BITS
from ..config import EngineConfig
from .decodes import RIDE, RIDE_BITS, Decodes
from .inflow import NEVER, Inflow
from .log import Log


class Position(NamedTuple):
    """How far the engine has come."""

    step: int
    clock: int
    """Clock units since the first arrival."""
    full_blocks: int
    """KV blocks that those on board hold at their end."""


class Cruise:
    """Takes steps while nobody waits, prefills in pieces, lacks a KV block or may hang up: most of most workloads.

    It does what `_leap` and `_take_step` of the engine do then, over local names and almost without calls.
    """

    def __init__(self, config: EngineConfig, inflow: Inflow, decodes: Decodes) -> None:
        self._inflow = inflow
        self._decodes = decodes
        self._seats = config.seats
        self._token_budget = config.max_num_batched_tokens
        self._blocks = config.usable_blocks

    def take_steps(self, at: Position, end: int, log: Log) -> Position:
        """Take steps up to number `end`, or to the first that is not that simple."""
        decodes, inflow = self._decodes, self._inflow
        rides, due, base, token_units = decodes.rides, decodes.due, decodes.base, decodes.token_units
        prompts, targets, blocks, attention = inflow.prompt, inflow.target, inflow.blocks, inflow.attention
        comes_at, board, in_lanes = inflow.comes_at, log.boarded.append, len(inflow.lanes) > 1
        seats, most_rows, all_blocks = self._seats, self._token_budget, self._blocks
        n, origins, number = decodes.n, decodes.origins, decodes.next
        step, clock, full_blocks = at
        request, last, before = inflow.taken, self._last_simple(), len(log.boarded)
        until = comes_at[request] if request < len(comes_at) else NEVER << UNIT_BITS
        while step < end:
            if clock < until:
                if not n:
                    break
                steps = due[0] >> RIDE_BITS
                steps = (steps if steps < end else end) - step
                seen = n * step - origins
                units = base[n] * steps + token_units * (seen * steps + n * (steps * (steps - 1) >> 1))
                if clock + units >= until:
                    steps, units = least_steps(base[n] + token_units * seen, token_units * n, until - clock)
                clock += units
                step += steps
            else:
                rows, held, boarding = n, full_blocks, request
                units = token_units * (n * step - origins)
                while boarding < last and comes_at[boarding] <= clock:
                    rows += prompts[boarding]
                    units += attention[boarding]
                    held += blocks[boarding]
                    boarding += 1
                if rows > most_rows or held > all_blocks or n + boarding > seats + request or boarding == last:
                    break
                if (boarding > request + 1 and in_lanes) or rows >= len(base):
                    break
                clock += base[rows] + units
                for who in range(request, boarding):
                    board(step)
                    off = step + targets[who]
                    if off > step + 1:
                        rides[number] = who, step + 1, step - prompts[who], off
                        heappush(due, off << RIDE_BITS | number)
                        n += 1
                        origins += step - prompts[who]
                        full_blocks += blocks[who]
                    number += 1
                request = boarding
                step += 1
                until = comes_at[request]
            while due[0] >> RIDE_BITS <= step:
                ride = rides.pop(heappop(due) & RIDE, None)
                if ride is not None:
                    n -= 1
                    origins -= ride[2]
                    full_blocks -= blocks[ride[0]]
        log.cruises += (decodes.next, inflow.taken, len(log.boarded) - before)
        decodes.change(n, origins, number)
        inflow.skip_to(request)
        return Position(step, clock, full_blocks)

    def _last_simple(self) -> int:
        """The first request from the next one on that others must see to: who hangs up, or the last that is known."""
        taken = self._inflow.taken
        return min((n for n in self._inflow.aborts if n >= taken), default=len(self._inflow.comes_at) - 1)


def least_steps(first: int, growth: int, units: int) -> tuple[int, int]:
    """The least k with first·k + growth·k(k−1)/2 ≥ units, and that sum; for 0 ≤ growth ≤ first and 0 < units."""
    linear = first - growth / 2
    k = (int((sqrt(linear * linear + 2.0 * growth * units) - linear) / growth) if growth else units // first) + 1
    total = first * k + growth * (k * (k - 1) >> 1)
    while total < units:
        total += first + growth * k
        k += 1
    while (less := total - first - growth * (k - 1)) >= units:
        total = less
        k -= 1
    return k, total
