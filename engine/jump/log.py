"""The log of a segment: what changed, at which step. Every column of its steps and requests is made from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ...events import FinishReason

RIDE_FIELDS, CHUNK_FIELDS, IDLE_FIELDS, CRUISE_FIELDS = 5, 6, 2, 3
CACHED_FIELDS, HASHED_FIELDS, PARTS_FIELDS = 3, 2, 3
BOARDS, COMPLETES, ENDS = 1, 2, 4
"""Flags of a chunk: its request boards; its last row is the request's newest token; so is its last step."""


class Ending(NamedTuple):
    """A request that ended otherwise than with its last token: noticed at `at_ns`, before step `step`."""

    request: int
    step: int
    at_ns: int
    reason: FinishReason
    output_tokens: int


@dataclass(slots=True)
class Log:
    """Changes, most of them as flat lists of integers; requests and steps are numbered from the run's first."""

    rides: list[int] = field(default_factory=list[int])
    """Number and `Ride` of everybody who decodes in the segment; who did so before begins with its first step."""
    cut: dict[int, int] = field(default_factory=dict[int, int])
    """Rides (by number) that ended early, and the step that they are not in any more."""
    chunks: list[int] = field(default_factory=list[int])
    """(step, request, rows, tokens computed before, high-water mark, flags) of each chunk."""
    cruises: list[int] = field(default_factory=list[int])
    """(first ride, first request, requests) of those who boarded in their order, each with the whole prompt."""
    boarded: list[int] = field(default_factory=list[int])
    """The steps in which they did. Their chunks and rides, whose numbers rise with theirs, follow from that."""
    preempted: list[int] = field(default_factory=list[int])
    """(step, request) of each who was put off, and waits again."""
    hung_up: list[int] = field(default_factory=list[int])
    """Steps before which somebody who waited hung up."""
    idles: list[int] = field(default_factory=list[int])
    """(step, clock units without a step before it)."""
    cached: list[int] = field(default_factory=list[int])
    """With a prefix cache, (tokens served, hashed KV blocks held, their parts) of each chunk, in their order."""
    held: list[int] = field(default_factory=list[int])
    """With a prefix cache, the hashed KV blocks that each ride holds."""
    hashed: list[int] = field(default_factory=list[int])
    """With a prefix cache, (step, hashed KV blocks in use) from that step on."""
    parts: list[int] = field(default_factory=list[int])
    """With a prefix cache, (step, group, its decoders' parts of hashed KV blocks, in 2⁻²⁰) from that step on."""
    endings: list[Ending] = field(default_factory=list[Ending])


class Segment(NamedTuple):
    """Some hundred to some ten thousand consecutive steps, and what came to an end in them."""

    log: Log
    first: int
    steps: int
    base_ns: int
    clock: int
    """When the first step starts unless time passes before it: clock units after `base_ns`."""
    ended_ns: int
    """When the step before the first one ended, UTC."""
    waiting: int
    """Requests that waited at the end of the segment before."""
    arrived: range
    """Requests that arrived since."""
    now_ns: int
    """Everything before this instant has been told."""
    forgotten: int
    """How many requests that had ended were numbered before those of this segment, and are no more."""
