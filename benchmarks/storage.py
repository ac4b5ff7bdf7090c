"""How fast and how small a store is, as ratios to bare SQLite and bare Parquet in the same run.

    python benchmarks/storage.py [MILLION_STEPS] [FOLDER]    (10 million archived steps, a temporary folder)

Ingest is `Store.append` of steps, half a second of 1 000 steps/s at a time, against `sqlite3.executemany` of the same
columns; archiving is what a roll writes, against `pyarrow.parquet.write_table` of the same rows. The last hour, a
month's roll-up by tenant and day and `farebox top --once` are asked in processes of their own, from a month of steps of
four engines with one share each; the first includes opening the store, but not the import of the libraries, which is
told apart. 100 million take 2.1 GB and some three minutes of a processor.
Processor seconds, best of three; exits with 1 when a limit is missed.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from farebox.events import LEDGER, REQUESTS, SHARES, STEPS, Batch, Progress, Run, Table
from farebox.storage.archive import staging
from farebox.storage.database import Database
from farebox.storage.layout import DAY_NS, Layout
from farebox.storage.manifest import all_files
from farebox.storage.runs import put_run
from farebox.storage.store import create_store

DAYS, TENANTS = 30, 20
ENGINES = ("e0", "e1", "e2", "e3")
START_NS = 1_790_812_800 * 10**9  # 2026-10-01
HOUR_NS = 3_600 * 10**9
BATCH_STEPS = 500
LAST_HOUR = """
import time
begun = time.process_time()
import farebox, pyarrow.dataset
from farebox.storage import answers, reading
loaded, clock = time.process_time(), time.perf_counter()
with farebox.open_store({store!r}) as store:
    rows = store.steps({since}, columns=["started_ns", "duration_ns", "running"]).arrow()
print(rows.num_rows, time.process_time() - loaded, loaded - begun, time.perf_counter() - clock)
"""
ROLL_UP = """
import resource, time, farebox
start = time.process_time()
with farebox.open_store({store!r}) as store:
    rows = store.query("SELECT tenant_id, date, sum(gpu_ns) AS gpu_ns FROM shares GROUP BY ALL").arrow()
print(sum(rows["gpu_ns"].to_pylist()), time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
TOP = """
import resource, sys
from farebox.cli import main
sys.argv = ["farebox", "top", {store!r}, "--once"]
try:
    main()
except SystemExit as done:
    assert not done.code, done.code
used = resource.getrusage(resource.RUSAGE_SELF)
print()
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def make_steps(first: int, count: int, start_ns: int, end_ns: int, engine: str = "e0") -> pa.Table:
    """Steps of one engine, evenly spread over a time, of a batch that fills and empties."""
    dice = np.random.default_rng(first)
    gap = (end_ns - start_ns) // count
    riders = np.clip(16 + np.cumsum(dice.integers(-1, 2, count)), 1, 256)
    duration = np.minimum(6_000_000 + riders * 31_000 + dice.integers(0, 9_000, count), gap)
    blocks = riders * 60 + dice.integers(0, 20, count)
    zero = np.zeros(count, np.int64)
    numbers = dict.fromkeys((c.name for c in STEPS.columns if c.kind == "int"), zero) | {
        "step_seq": first + np.arange(count),
        "started_ns": start_ns + gap * np.arange(count),
        "duration_ns": duration,
        "decode_ns": duration,
        "idle_before_ns": gap - duration,
        "gpus": zero + 1,
        "running": riders,
        "decode_seqs": riders,
        "decode_tokens": riders,
        "output_tokens": riders,
        "kv_blocks_used": blocks,
        "kv_blocks_total": zero + 26_545,
        "flops": riders * 13_958_643_712 + blocks * 8_388_608,
        "bytes": 15_009_316_864 + blocks * 2_097_152,
    }
    return as_table(STEPS, numbers, {"engine_id": engine, "run_id": "r0", "basis": "step", "held_by": None}, count)


def make_shares(steps: pa.Table, engine: str = "e0") -> pa.Table:
    """One share of each step, of a tenant by turns that last some steps."""
    count = steps.num_rows
    seq, riders = (steps.column(name).to_numpy() for name in ("step_seq", "running"))
    zero = np.zeros(count, np.int64)
    numbers = dict.fromkeys((c.name for c in SHARES.columns if c.kind == "int"), zero) | {
        "step_seq": seq,
        "started_ns": steps.column("started_ns").to_numpy(),
        "seqs": riders,
        "rows": riders,
        "output_tokens": riders,
        "attn": riders * 41_231_000,
        "kv_block_ns": steps.column("kv_blocks_used").to_numpy() * steps.column("duration_ns").to_numpy(),
        "gpu_ns": steps.column("duration_ns").to_numpy(),
    }
    names = pa.array([f"tenant-{n:02}" for n in range(TENANTS)])
    tenants = pa.DictionaryArray.from_arrays(pa.array(seq // 50 % TENANTS, pa.int32()), names).cast(pa.string())
    texts = {"engine_id": engine, "run_id": "r0", "account": "tenant", "tier": "standard", "phase": "decode"}
    return as_table(SHARES, numbers | {"tenant_id": tenants}, texts, count)


def as_table(table: Table, numbers: dict[str, Any], texts: dict[str, str | None], count: int) -> pa.Table:
    columns = [
        pa.array(numbers[c.name]) if c.name in numbers else pa.array([texts[c.name]] * count, pa.string())
        for c in table.columns
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def run_until(at_ns: int, engine: str = "e0") -> Run:
    return Run(
        engine, "r0", "h", "h100_sxm", (), 1, "llama-3-8b", "bf16", "continuous", 256, 8192, 2_097_152, 26_546, None,
        "real", START_NS, 0, at_ns, None,
    )  # fmt: skip


def best(work: Callable[[Path], None]) -> float:
    """Processor seconds of the fastest of three times, each in a folder of its own."""
    took: list[float] = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            work(Path(folder))
            took.append(time.process_time() - start)
    return min(took)


def ingest(steps: pa.Table, tables: tuple[Table, ...]) -> float:
    """Bare SQLite's processor time over a store's for the same steps (and shares) in the same transactions."""
    cut = [steps.slice(at, BATCH_STEPS) for at in range(0, steps.num_rows, BATCH_STEPS)]
    told = [[piece, make_shares(piece)][: len(tables)] for piece in cut]
    none = [table.schema.empty_table() for table in (SHARES, REQUESTS, LEDGER)]
    batches = [
        Batch(
            run_until(START_NS + 10**9 * (i + 1)), *pieces, *none[len(tables) - 1 :],
            Progress((i + 1) * BATCH_STEPS, 0, START_NS + i),
        )
        for i, pieces in enumerate(told)
    ]  # fmt: skip
    rows = [
        [list(zip(*(p.column(i).to_pylist() for i in range(p.num_columns)), strict=True)) for p in ps] for ps in told
    ]

    def through_the_store(folder: Path) -> None:
        with create_store(folder / "s") as store:
            for batch in batches:
                store.append(batch)

    def bare(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "x.sqlite", isolation_level=None)) as connection:
            connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
            inserts = [bare_table(connection, table) for table in tables]
            for pieces in rows:
                connection.execute("BEGIN IMMEDIATE")
                for statement, piece in zip(inserts, pieces, strict=True):
                    connection.executemany(statement, piece)
                connection.execute("COMMIT")

    return best(bare) / best(through_the_store)


def bare_table(connection: sqlite3.Connection, table: Table) -> str:
    """A table of the same columns and, for steps, the same key; returns what inserts into it."""
    types = {"int": "BIGINT", "str": "TEXT"}
    names = ", ".join(f"{c.name} {types[c.kind]}" for c in table.columns)
    connection.execute(f"CREATE TABLE {table.name} (id INTEGER PRIMARY KEY, {names})")
    if table is STEPS:
        connection.execute("CREATE UNIQUE INDEX steps_by_key ON steps (engine_id, run_id, step_seq)")
    return f"INSERT INTO {table.name} VALUES (NULL, {', '.join('?' * len(table.columns))})"


def archiving(steps: pa.Table) -> tuple[float, float]:
    """Processor seconds of the archive and of bare Parquet for the same steps."""

    def through_the_archive(folder: Path) -> None:
        create_store(folder).close()
        database = Database(Layout(folder).database)
        with staging(Layout(folder), database) as files:
            files.add(STEPS, steps)
            with database.writing() as connection:
                files.record(connection)
        database.close()

    def bare(folder: Path) -> None:
        pq.write_table(steps, folder / "steps.parquet", compression="zstd")

    return best(through_the_archive), best(bare)


def make_month(folder: Path, steps: int) -> int:
    """A store with a month of archived steps, files of a million rows at most; returns the GPU time of all shares."""
    create_store(folder).close()
    layout, database, per_day = Layout(folder), Database(Layout(folder).database), steps // DAYS
    pieces, paid = -(-per_day // 2**20), 0
    size = per_day // pieces // len(ENGINES)
    for piece in range(DAYS * pieces):
        start = START_NS + DAY_NS // pieces * piece
        of = {name: make_steps(piece * size, size, start, start + DAY_NS // pieces, name) for name in ENGINES}
        shares = pa.concat_tables([make_shares(rows, name) for name, rows in of.items()])
        paid += int(shares.column("gpu_ns").to_numpy().sum())
        with staging(layout, database) as files:
            files.add(STEPS, pa.concat_tables(of.values()))
            files.add(SHARES, shares)
            with database.writing() as connection:
                files.record(connection)
    with database.writing() as connection:
        for name in ENGINES:
            put_run(connection, run_until(START_NS + DAYS * DAY_NS, name))
    database.close()
    return paid


def sizes(folder: Path) -> dict[str, float]:
    """Bytes per row by table."""
    database = Database(Layout(folder).database)
    with database.reading() as connection:
        files = all_files(connection)
    database.close()
    names = sorted({file.table_name for file in files})
    by_name = {name: [file for file in files if file.table_name == name] for name in names}
    return {name: sum(f.bytes for f in of) / sum(f.rows for f in of) for name, of in by_name.items()}


def asked(code: str, **values: object) -> list[float]:
    """What a process of its own prints: the answer, seconds, and what else it measures."""
    done = subprocess.run([sys.executable, "-c", code.format(**values)], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.splitlines()[-1].split()]


def ask_month(folder: Path, million: float, paid: int, check: Callable[..., None]) -> None:
    """The last hour, the whole month and the screens, each by a process of its own."""
    since = START_NS + DAYS * DAY_NS - HOUR_NS
    rows, seconds, loading, waited = asked(LAST_HOUR, store=str(folder), since=since)
    of = f"{million:g} M steps"
    check(f"open a store of {of}, read the last hour ({rows:,.0f})", 1000 * seconds, 300, "ms", most=True)
    check("the same by the clock", 1000 * waited, 300, "ms", most=True)
    print(f"libraries load in {1000 * loading:.0f} ms")
    found, seconds, peak_kib = asked(ROLL_UP, store=str(folder))
    assert found == float(paid), (found, paid)
    name = f"a month by tenant and day from {million:g} M shares: {seconds:.1f} s"
    check(name, peak_kib / 2**20, 1, "GiB", most=True)
    seconds, peak_kib = asked(TOP, store=str(folder))
    check(f"farebox top --once: {seconds:.1f} s", peak_kib / 2**10, 400, "MiB", most=True)


def main() -> int:
    million = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    misses: list[str] = []

    def check(name: str, value: float, limit: float, unit: str, *, most: bool) -> None:
        good = value <= limit if most else value >= limit
        print(f"{name:<58} {value:10.2f} {unit:<8} {'≤' if most else '≥'} {limit:g}{'' if good else '   MISSED'}")
        if not good:
            misses.append(name)

    some = make_steps(0, 50_000, START_NS, START_NS + HOUR_NS)
    check("steps into a store, against sqlite3.executemany", ingest(some, (STEPS,)), 0.5, "×", most=False)
    check("steps with a share each, against the same", ingest(some, (STEPS, SHARES)), 0.5, "×", most=False)
    ours, bare = archiving(make_steps(0, 1_000_000, START_NS, START_NS + DAY_NS))
    print(f"archive: {1 / ours:,.2f} million steps per processor second; bare Parquet {1 / bare:,.2f}")
    check("archive against pyarrow.parquet.write_table", bare / ours, 0.7, "×", most=False)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(scratch) / "month"
        paid = make_month(folder, round(million * 1e6))
        for name, limit in (("steps", 24.0), ("shares", 12.0)):
            check(
                f"bytes per row of {name} (made up)",
                sizes(folder)[name],
                limit,
                "bytes",
                most=True,
            )
        ask_month(folder, million, paid, check)
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
