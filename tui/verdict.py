"""One sentence on what limits the engine right now."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .line import Role
    from .snapshot import Snapshot

NO_STEPS = "its page tells no steps"
NEAR = 0.4
"""From this part of a peak on, it is what steps wait for."""
FULL = 0.95


def verdict(snapshot: Snapshot) -> tuple[str, Role]:
    """What limits the engine, and whether that is good news."""
    s = snapshot
    if s.busy_ns == 0:
        return "no step ran in this window", "warn"
    is_full = s.kv_part is not None and s.kv_part >= FULL
    if s.preemptions and is_full:
        return "KV cache is full: riders are put off, and their prompts computed again", "bad"
    if s.waiting and is_full:
        return "KV cache is full: riders wait for memory, not for seats", "bad"
    if s.waiting and s.riding is not None and s.seats and s.riding >= s.seats:
        return f"every seat is taken and {s.waiting} wait", "bad"
    return _bound(s) if s.engine.every_ns is None else _scraped(s)


def _scraped(s: Snapshot) -> tuple[str, Role]:
    if s.riding == 1 and not s.waiting:
        return "batch of 1: not enough parallel requests", "warn"
    return s.roofline_reason or "", "label"


def _bound(s: Snapshot) -> tuple[str, Role]:
    compute, bandwidth = s.compute_used, s.bandwidth_used
    if compute is None or bandwidth is None:
        return s.roofline_reason or "the steps do not tell their FLOPs or bytes", "label"
    if compute > bandwidth and compute >= NEAR:
        return "compute-bound: every further rider makes steps longer", "warn"
    if bandwidth >= NEAR:
        return "memory-bound: more riders are nearly free", "good"
    return "neither compute nor memory is near its peak: overhead dominates", "warn"
