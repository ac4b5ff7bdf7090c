"""Killed: a recorder that dies at any moment, in the middle of archiving and compaction too, and is started again."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

from comparing import check_prefix, expect
from witness import SPEED, Nobody, live

from farebox.collector.recorder import Recorder
from farebox.engine.pace import Pace
from farebox.storage.errors import ArchiveBusyError, StoreFullError
from farebox.storage.store import Store, create_store

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["kills", "spooling"])


def torture(folder: Path, random: Random, rounds: int) -> str:
    """Kill the recorder so many times, let it end its run, and compare after each; returns what was done."""
    seed, store, requests = random.randrange(10**6), folder / "s", 400 * (rounds + 1)
    alone = live(seed, requests, Nobody())
    steps = told_steps = 0
    took = 0.0
    for _ in range(rounds):
        recorder, told = start(record, store, seed, requests, SPEED)
        first, began = told.recv(), time.monotonic()
        for _ in range(random.randint(1, 3)):
            told_steps = told.recv()
        time.sleep(random.uniform(0, 0.5))
        recorder.kill()
        recorder.join()
        took += time.monotonic() - began
        steps += told_steps - first
        expect("how the recorder ended", recorder.exitcode, -signal.SIGKILL)
        if check_prefix(store, alone).steps < told_steps:
            raise AssertionError(f"{told_steps} steps were safe before the kill")
    recorder, told = start(record, store, seed, requests, 100 * SPEED)
    said = last_of(told)
    recorder.join()
    expect("the engine that was killed, and the one that was not", said, alone.totals())
    expect("all of the run", check_prefix(store, alone).steps, said.steps)
    return f"killed {rounds} times at {steps / took:,.0f} steps/s; {said.steps:,} steps are there, each once"


def start(task: Callable[..., Any], *arguments: Any) -> tuple[BaseProcess, Connection]:
    """A process of its own for a task, and what it tells."""
    told, tell = _SERVER.Pipe(duplex=False)
    process = _SERVER.Process(target=task, args=(tell, *arguments))
    process.start()
    tell.close()
    return process, told


def last_of(told: Connection) -> Any:
    """The last thing that a process tells."""
    found = None
    with suppress(EOFError):
        while True:
            found = told.recv()
    return found


def record(tell: Connection, path: Path, seed: int, requests: int, speed: float, *, dies: bool = False) -> None:
    """Record the engine's run, or the rest of it, archiving and compacting all the time.

    Tells how many steps are safe, and in the end what the engine said; then it `dies`, or closes the store.
    """
    with create_store(path) as store:
        recorder = Recorder(store, bulk=False)
        tell.send(safe_steps(store))
        turn = 0

        def tick() -> None:
            nonlocal turn
            if recorder.flush_if_due():
                turn += 1
                tell.send(safe_steps(store))
                keep_in_order(store, turn)

        witness = live(seed, requests, recorder, Pace(speed, lead_ns=lead_ns(store)), tick)
        recorder.flush()
        tell.send(witness.totals())
        if dies:
            os._exit(9)


def safe_steps(store: Store) -> int:
    """How many steps the store says that it has."""
    found = [store.progress(run.engine_id, run.run_id) for run in store.runs()]
    return sum(progress.steps for progress in found if progress is not None)


def lead_ns(store: Store) -> int:
    """How much of the engine's time is recorded, and told again without waiting."""
    return sum(run.heartbeat_ns - run.started_ns for run in store.runs())


def keep_in_order(store: Store, turn: int) -> None:
    """Far more chores than a recorder has: every flush is archived, and every third time files are merged."""
    with suppress(StoreFullError, ArchiveBusyError):
        store.roll()
        if turn % 3 == 0:
            store.compact()
