"""Other processes for the tests: one that dies at every dangerous moment, and ones that record."""

import itertools
import json
import os
import pickle
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

from conftest import Server
from sqlalchemy import Engine, event

from farebox.collector.backlog import Backlog
from farebox.events import LEDGER, REQUESTS, SHARES, SOURCE_STATES, STEPS
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store


def die_before_call(n: int) -> None:
    """Exit, as if killed, just before the n-th call that changes what a disk keeps."""
    calls = itertools.count(1)

    def wrap(function):
        def wrapped(*args, **kwargs):
            if next(calls) == n:
                os._exit(9)
            return function(*args, **kwargs)

        return wrapped

    for name in ("fsync", "replace", "unlink"):
        setattr(os, name, wrap(getattr(os, name)))
    before_commit = wrap(lambda: None)

    def commit(connection):
        if connection.get_execution_options().get("begin"):
            before_commit()

    event.listen(Engine, "commit", commit)


def crash(store: str, operation: str, batch: str) -> None:
    """Do one operation on copies of a store, dying at one moment after another; prints each copy and how it went."""
    arguments = [pickle.loads(Path(batch).read_bytes())] if operation.startswith("append") else []
    arguments += ["chat"] if operation == "erase_requests" else []
    for n in itertools.count(1):
        copy = f"{store}-{operation}-{n}"
        shutil.copytree(store, copy)
        child = os.fork()
        if child == 0:
            opened = create_store(copy)
            die_before_call(n)
            getattr(opened, operation)(*arguments)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print(copy, code, flush=True)
        if code != 9:
            return


def record(store: str, batches: str) -> None:
    """Record batches of one run, rolling now and then; prints how many are safe."""
    server = Server()
    with create_store(store) as opened:
        for i in range(int(batches)):
            opened.append(server.batch(20))
            if i % 7 == 6:
                opened.roll()
            print(i + 1, flush=True)
            time.sleep(0.005)


def hold(store: str) -> None:
    """Hold a store's lock until standard input ends."""
    with create_store(store):
        print(os.getpid(), flush=True)
        sys.stdin.read()


def fill(folder: str, most_rows: str) -> None:
    """Record on a disk that fills up and gets room again; prints what was said, dropped and kept of it as JSON."""
    server, said = Server(), []
    ballast = Path(folder) / "ballast"
    with create_store(Path(folder) / "s") as store:
        backlog = Backlog(store, store.append, int(most_rows), said.append)
        batches = [server.batch(80) for _ in range(12)]
        backlog.put(batches[0])
        fill_up(ballast)
        for batch in batches[1:11]:
            backlog.put(batch)
            with LiveReader(store.path) as live:
                assert live.runs()
        full_steps = store.read(STEPS).num_rows
        store.maintain(server.now_ns)
        ballast.unlink()
        backlog.put(batches[11])
        kept = {table.name: store.read(table).num_rows for table in (STEPS, SHARES, REQUESTS)}
        told = {
            table.name: sum(getattr(b, table.name).num_rows for b in batches) for table in (STEPS, SHARES, REQUESTS)
        }
        paid = [sum(rows["gpu_ns"].to_pylist()) for rows in (store.read(LEDGER), *(b.ledger for b in batches))]
        states = [state.state for state in store.settings(SOURCE_STATES)]
        whole = store.progress("e0", "r0") == batches[11].progress
    print(json.dumps([said, full_steps, kept, told, backlog.dropped, paid[0] == sum(paid[1:]), states, whole]))


def fill_up(file: Path) -> None:
    """Leave no room on the disk of a file."""
    with file.open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(b"x" * 4096)


if __name__ == "__main__":
    {"crash": crash, "record": record, "hold": hold, "fill": fill}[sys.argv[1]](*sys.argv[2:])
