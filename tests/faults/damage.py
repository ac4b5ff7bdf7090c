"""Corrupted: bytes flipped, cut off or gone in any file of a store; what cannot be read is named, the rest is exact."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from comparing import check_prefix, expect
from kills import last_of, record, start
from witness import SPEED, START_NS, Nobody, live

import farebox
from farebox.errors import FareboxError
from farebox.events import LEDGER, REQUESTS, SHARES, STEPS, Table
from farebox.storage.store import create_store, open_store

TABLES = (STEPS, SHARES, REQUESTS, LEDGER)
REQUESTS_TOLD = 160
WINDOW = (START_NS + 4 * 10**9, START_NS + 9 * 10**9)


def torture(folder: Path, random: Random, rounds: int) -> str:
    """Damage copies of a store so many times; returns what became of them."""
    seed, left, copy = random.randrange(10**6), folder / "left", folder / "copy"
    recorder, told = start(partial(record, dies=True), left, seed, REQUESTS_TOLD, SPEED)
    last_of(told)
    recorder.join()
    shutil.copytree(left, copy)
    truth = {table: everything(copy, table) for table in TABLES}
    outcomes: dict[str, int] = {}
    for _ in range(rounds):
        for kind in (a_parquet_file, the_log, the_database):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(left, copy)
            outcome = f"{kind.__name__.replace('_', ' ')} {kind(copy, random, seed, truth)}"
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return ", ".join(f"{outcome} {count}×" for outcome, count in sorted(outcomes.items()))


def everything(path: Path, table: Table, **limits: int) -> pa.Table:
    """What a store answers, in a fixed order; a warning is an error."""
    rows, warnings = answer(path, table, **limits)
    expect("warnings", warnings, [])
    return rows


def answer(path: Path, table: Table, **limits: int) -> tuple[pa.Table, list[str]]:
    with open_store(path) as store:
        rows = store.read(table, **limits)
        return in_order(rows), store.warnings


def in_order(rows: pa.Table) -> pa.Table:
    """Rows in an order that only their values decide."""
    return rows.sort_by([(field.name, "ascending") for field in rows.schema if not pa.types.is_list(field.type)])


# What is damaged


def a_parquet_file(copy: Path, random: Random, seed: int, truth: dict[Table, pa.Table]) -> str:
    """One file of the archive: its rows are there, all of them, or all of them are gone and it is named."""
    table = random.choice(TABLES)
    file = random.choice(sorted((copy / "archive" / table.name).rglob("*.parquet")))
    gone = pq.read_table(file).select(truth[table].column_names).cast(table.schema)
    damage(file, random)
    for limits in ({}, {"start_ns": WINDOW[0], "end_ns": WINDOW[1]}):
        rows, warnings = answer(copy, table, **limits)
        if warnings:
            assert file.name in warnings[0], warnings
            rows = in_order(pa.concat_tables([rows, within(table, gone, limits)]))
        if not rows.equals(within(table, truth[table], limits)):
            raise AssertionError(f"{file} is damaged, and {table.name} are other rows: {warnings}")
    return "named" if warnings else "harmless"


def the_log(copy: Path, random: Random, seed: int, truth: dict[Table, pa.Table]) -> str:
    """The write-ahead log: the store is as it was at some earlier instant, whole."""
    damage(copy / "live.sqlite-wal", random)
    create_store(copy).close()
    steps = check_prefix(copy, live(seed, REQUESTS_TOLD, Nobody())).steps
    return "whole" if steps == truth[STEPS].num_rows else "earlier"


def the_database(copy: Path, random: Random, seed: int, truth: dict[Table, pa.Table]) -> str:
    """The database, and with it the manifest: it is refused in plain words, or answers as before."""
    with create_store(copy):
        pass
    damage(copy / "live.sqlite", random)
    try:
        create_store(copy).close()
        found = {table: answer(copy, table) for table in TABLES}
        with farebox.open_store(copy) as store:
            store.query("SELECT count(*) FROM steps").arrow()
    except FareboxError:
        return "refused"
    if any(warnings for _, warnings in found.values()):
        return "named"
    return "harmless" if all(found[table][0].equals(truth[table]) for table in TABLES) else "unnoticed"


def within(table: Table, rows: pa.Table, limits: dict[str, int]) -> pa.Table:
    if not limits:
        return rows
    at = pc.field(table.time)
    return rows.filter((at >= limits["start_ns"]) & (at < limits["end_ns"]))


# How it is damaged


def damage(file: Path, random: Random) -> None:
    """Flip some bits, cut the file off, overwrite a block with zeros, empty it, or remove it."""
    random.choices((flip, cut, blank, empty, remove), (12, 3, 3, 1, 1))[0](file, random)


def flip(file: Path, random: Random) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(random.choice((1, 1, 3))):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    file.write_bytes(content)


def cut(file: Path, random: Random) -> None:
    os.truncate(file, random.randrange(file.stat().st_size))


def blank(file: Path, random: Random) -> None:
    content = bytearray(file.read_bytes())
    at = random.randrange(len(content))
    content[at : at + 512] = bytes(len(content[at : at + 512]))
    file.write_bytes(content)


def empty(file: Path, random: Random) -> None:
    file.write_bytes(b"")


def remove(file: Path, random: Random) -> None:
    file.unlink()
