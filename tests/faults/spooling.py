"""Spooled: an engine that tells its events through a spool whose writer, reader and bytes are tortured."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from comparing import check_ledger, expect, stored_totals, unobserved_ns
from damage import cut, flip
from kills import safe_steps, start
from witness import SPEED, Nobody, Witness, live

from farebox.collector.spooled.engines import Engines
from farebox.collector.spooled.source import SpoolSource
from farebox.engine.pace import Pace
from farebox.events import LEDGER, STEPS, Request, Run, Share, Step
from farebox.storage.spool.writer import SpoolWriter
from farebox.storage.store import create_store

_OF_STEP = ("engine_id", "run_id", "step_seq", "started_ns", "gpu_ns")


class Spool:
    """A sink that puts what it is told into a spool, as an engine in another process does."""

    def __init__(self, folder: Path, **limits: int) -> None:
        self.writer = SpoolWriter(folder, **limits)
        self._names: dict[str, str] = {}
        self._is_told = False

    def run(self, run: Run) -> None:
        names = {"engine_id": run.engine_id, "run_id": run.run_id}
        if not self._is_told or run.ended_ns is not None:
            self._is_told = True
            told = run._asdict() | {"step_model": None, "gpu_type": "unknown"}
            self.writer.put({"run": {name: value for name, value in told.items() if name != "heartbeat_ns"}})
        self.writer.put({"beat": names | {"at_ns": run.heartbeat_ns}})

    def step(self, step: Step, cells: Sequence[Share]) -> None:
        self.writer.put({"step": step._asdict(), "cells": [_cell(cell) for cell in cells]})

    def request(self, request: Request) -> None:
        self.writer.put({"request": request._asdict()})


def _cell(share: Share) -> dict[str, Any]:
    return {name: value for name, value in share._asdict().items() if name not in _OF_STEP}


def torture(folder: Path, random: Random, rounds: int) -> str:
    """Kill the writer while its spool is drained, then damage copies of a spool and drain them."""
    seed = random.randrange(10**6)
    alone = live(seed, 300 * rounds, Nobody())
    kept = killed_writer(folder, random, seed, 300 * rounds, alone)
    whole, lost = folder / "whole", 0
    told = live(seed, 100, spool := Spool(whole / "w", segment_bytes=100_000))
    spool.writer.close()
    for turn in range(2 * rounds):
        shutil.rmtree(folder / "spools", ignore_errors=True)
        shutil.copytree(whole, folder / "spools")
        for _ in range(random.choice((1, 4))):
            segment = random.choice(sorted((folder / "spools/w").glob("*.spool")))
            random.choices((flip, cut), (4, 1))[0](segment, random)
        lost += drained(folder / f"d{turn}", folder / "spools", told)
    return f"writer killed with {kept:,} of {len(alone.steps):,} steps told; {lost:,} damaged steps, all reported"


def killed_writer(folder: Path, random: Random, seed: int, requests: int, alone: Witness) -> int:
    """Drain a spool while it is written and its writer is killed; what was drained is the beginning, whole."""
    writer, told = start(write, folder / "live/w", seed, requests)
    told.recv()
    with create_store(folder / "s") as store:
        source = SpoolSource(store, folder / "live", Engines())
        until = time.monotonic() + random.uniform(0.5, 1.5)
        while time.monotonic() < until or not safe_steps(store):
            source.look()
            time.sleep(0.02)
        writer.kill()
        writer.join()
        while source.look() and source.drains:
            pass
        (run,) = store.runs()
        progress = store.progress(run.engine_id, run.run_id)
        assert progress is not None
        found = stored_totals(store)
        expect("the beginning of the run", found, alone.totals(progress.steps, progress.requests))
        check_ledger(store.read(LEDGER), run, found)
        return progress.steps


def write(tell: Connection, folder: Path, seed: int, requests: int) -> None:
    """Spool the engine's run in its own time."""
    sink = Spool(folder, segment_bytes=100_000)
    tell.send(True)
    live(seed, requests, sink, Pace(SPEED))
    sink.writer.close()


def drained(path: Path, spools: Path, told: Witness) -> int:
    """Drain a damaged spool: steps that are there are exact, and the time of the others is nobody's; how many."""
    with create_store(path) as store:
        source = SpoolSource(store, spools, Engines())
        while source.look() and source.drains:
            pass
        found = store.runs()
        if not found:
            expect("a spool without a run is reported", source.faults["refused"] > 0, True)
            return len(told.steps)
        (run,) = found
        numbers = store.read(STEPS)["step_seq"].to_pylist()
        expect("every step once", len(numbers), len(set(numbers)))
        totals = stored_totals(store)
        expect("steps that are there", totals[:10], told.totals_of(sorted(numbers), 0)[:10])
        lost = sorted(set(range(len(told.steps))) - set(numbers))
        ledger = store.read(LEDGER)
        check_ledger(ledger, run, totals)
        if lost:
            expect("loss is reported", source.faults["damaged"] + source.faults["refused"] > 0, True)
        if lost and numbers and lost[0] < max(numbers):
            expect("lost time is nobody's", unobserved_ns(ledger) > 0, True)
        return len(lost)
