"""Records: what the meter saw as events of a spool (docs/spool.md), made on the thread that writes."""

from __future__ import annotations

import time
from typing import Any

from .clock import Clock
from .meter import Departure
from .ride import Chunk
from .run import Names
from .trip import Trip

REASONS = {
    "FINISHED_STOPPED": "stop",
    "FINISHED_REPETITION": "stop",
    "FINISHED_LENGTH_CAPPED": "length",
    "FINISHED_ABORTED": "abort",
    "FINISHED_IGNORED": "rejected",
}
"""vLLM's ends of a request. Whatever else it may come to know is an error to whoever asked."""

CellKey = tuple[str, str, str, str]
"""Account, tenant, tier and phase."""
COUNTS = ("seqs", "rows", "output_tokens", "cached_tokens", "attended", "blocks")


class Records:
    """Makes the events of one run."""

    def __init__(self, names: Names, clock: Clock, gpus: int, kv_blocks: int) -> None:
        self._names = names
        self._utc = clock.utc
        self._gpus = gpus
        self._kv_blocks = kv_blocks
        self._run = {"engine_id": names.engine_id, "run_id": names.run_id}

    def event(self, seen: Any) -> dict[str, Any]:
        """The event that something queued stands for.

        Raises:
            ValueError: it cannot be told; the writer counts it as dropped.
        """
        time.sleep(0)  # lets the scheduler's thread go first, if it is waiting for the interpreter
        try:
            if isinstance(seen, Trip):
                return self._step(seen)
            return self._request(seen) if isinstance(seen, Departure) else seen
        except Exception as error:
            raise ValueError("vLLM's objects are not as the plugin knows them") from error

    def beat(self, at_ns: int) -> dict[str, Any]:
        """That all before an instant has been told."""
        return {"beat": self._run | {"at_ns": self._utc(at_ns)}}

    def _step(self, trip: Trip) -> dict[str, Any]:
        cells = cells_of(trip)
        prefills = [cell for key, cell in cells.items() if key[3] == "prefill"]
        decodes = [cell for key, cell in cells.items() if key[3] == "decode"]
        duration_ns = trip.ended_ns - trip.started_ns
        step = self._run | {
            "step_seq": trip.step_seq,
            "started_ns": self._utc(trip.started_ns),
            "duration_ns": duration_ns,
            "idle_before_ns": trip.idle_before_ns,
            "gpus": self._gpus,
            "running": trip.running,
            "waiting": trip.waiting,
            "prefill_seqs": sum(chunk.prefills + chunk.recomputed > 0 for chunk in trip.chunks),
            "decode_seqs": sum(cell[1] for cell in trip.decodes) + sum(chunk.decodes > 0 for chunk in trip.chunks),
            "prefill_tokens": sum(cell[1] for cell in prefills),
            "decode_tokens": sum(cell[1] for cell in decodes),
            "output_tokens": sum(cell[2] for cell in cells.values()),
            "cached_tokens": sum(cell[3] for cell in cells.values()),
            "recomputed_tokens": sum(chunk.recomputed for chunk in trip.chunks),
            "rejected_tokens": trip.rejected,
            "kv_blocks_used": trip.kv_blocks_used,
            "kv_blocks_total": self._kv_blocks,
            "preemptions": trip.preemptions,
            "basis": "step",
        }
        return {"step": step, "cells": _shares(cells, trip.kv_blocks_used, duration_ns)}

    def _request(self, departure: Departure) -> dict[str, Any]:
        ride, request = departure.ride, departure.ride.request
        lora = request.lora_request
        told = self._run | {
            "request_id": request.request_id,
            "tenant_id": ride.group.tenant_id,
            "tier": ride.group.tier,
            "model": self._names.model if lora is None else lora.lora_name,
            "arrived_ns": self._utc(ride.arrived_ns),
            "scheduled_ns": None if ride.scheduled_ns is None else self._utc(ride.scheduled_ns),
            "first_token_ns": None if ride.first_token_ns is None else self._utc(ride.first_token_ns),
            "finished_ns": self._utc(departure.finished_ns),
            "prompt_tokens": request.num_prompt_tokens,
            "cached_tokens": ride.cached,
            "output_tokens": departure.output_tokens,
            "max_tokens": request.max_tokens,
            "finish_reason": REASONS.get(departure.reason, "error"),
            "preemptions": request.num_preemptions,
        }
        return {"request": told}


def cells_of(trip: Trip) -> dict[CellKey, list[int]]:
    """The cells of a step, each with its COUNTS, in the order in which cells are told."""
    cells: dict[CellKey, list[int]] = {}
    for group, seqs, rows, attended, blocks in trip.decodes:
        output = trip.outputs.get(group, seqs)
        _add(cells, ("tenant", group.tenant_id, group.tier, "decode"), (seqs, rows, output, 0, attended, blocks))
    for chunk in trip.chunks:
        _add_chunk(cells, chunk)
    return dict(sorted(cells.items()))


def _add_chunk(cells: dict[CellKey, list[int]], chunk: Chunk) -> None:
    """Add one request's rows: its seat and KV blocks count where most of its rows are, attention goes by rows."""
    tenant_id, tier = chunk.ride.group.tenant_id, chunk.ride.group.tier
    fresh: CellKey = ("tenant", tenant_id, tier, "decode" if chunk.decodes or not chunk.prefills else "prefill")
    parts: dict[CellKey, int] = {
        ("overhead", tenant_id, tier, "prefill"): chunk.recomputed,
        ("tenant", tenant_id, tier, "prefill"): chunk.prefills,
        ("tenant", tenant_id, tier, "decode"): chunk.decodes,
    }
    rows = sum(parts.values())
    seat = max(reversed(parts), key=parts.__getitem__)
    begun = 0
    for key, count in parts.items():
        attended = chunk.attended * (begun + count) // rows - chunk.attended * begun // rows
        begun += count
        if count:
            seated = key == seat
            _add(cells, key, (int(seated), count, 0, 0, attended, chunk.blocks if seated else 0))
    if chunk.output or chunk.cached:
        _add(cells, fresh, (0, 0, chunk.output, chunk.cached, 0, 0))


def _add(cells: dict[CellKey, list[int]], key: CellKey, counts: tuple[int, ...]) -> None:
    cell = cells.setdefault(key, [0] * len(COUNTS))
    for place, count in enumerate(counts):
        cell[place] += count


def _shares(cells: dict[CellKey, list[int]], kv_blocks_used: int, duration_ns: int) -> list[dict[str, Any]]:
    """The cells as told. The pool's blocks in use are split by the blocks that everybody's tokens fill.

    So they sum to the blocks in use, and what is saved by sharing a prefix is spread over all.
    """
    filled = sum(cell[5] for cell in cells.values())
    block_ns = kv_blocks_used * duration_ns
    told: list[dict[str, Any]] = []
    begun = 0
    for (account, tenant_id, tier, phase), cell in cells.items():
        part_ns = block_ns * (begun + cell[5]) // filled - block_ns * begun // filled
        begun += cell[5]
        key = {"account": account, "tenant_id": tenant_id, "tier": tier, "phase": phase}
        told.append(key | dict(zip(COUNTS[:5], cell, strict=False)) | {"kv_block_ns": part_ns})
    return told
