"""Other processes for the tests: one that dies at every dangerous moment, and ones that record."""

import itertools
import os
import pickle
import shutil
import sys
import time
from pathlib import Path

from conftest import Server
from sqlalchemy import Engine, event

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


if __name__ == "__main__":
    {"crash": crash, "record": record, "hold": hold}[sys.argv[1]](*sys.argv[2:])
