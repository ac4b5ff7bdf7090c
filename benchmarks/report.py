"""How fast a month becomes a report: from the ledger, and from every cell of every step.

    python benchmarks/report.py [CELLS] [FOLDER]        (10 000 000 cells in a temporary folder unless given)

Fills a store with a month of four engines and twenty tenants, one file per day, and answers "month by team and day"
from the ledger and from the raw shares through `Store.scan`, and as the whole bill that `farebox report` writes, each
in a process of its own; DuckDB's bare GROUP BY on the same Parquet files is the yardstick.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from farebox.collector.books import load_books
from farebox.costing.formats import to_csv
from farebox.costing.periods import Period
from farebox.costing.report import build_report
from farebox.costing.rollup import roll_up
from farebox.events import LEDGER, MINUTE_NS, SHARES, Table
from farebox.storage.archive import staging
from farebox.storage.database import Database
from farebox.storage.layout import DAY_NS, Layout
from farebox.storage.store import create_store, open_store

DAYS, ENGINES, TENANTS, CELLS_PER_STEP = 30, 4, 20, 3
START_NS = 1_790_812_800 * 10**9  # 2026-10-01
BORDERS = [START_NS + day * DAY_NS for day in range(DAYS + 1)]
TEAMS = {f"tenant-{n:02}": f"team-{n % 6}" for n in range(TENANTS)}
SUMS = ("output_tokens", "gpu_ns")
Answer = dict[str, tuple[int, int]]
"""Tokens and GPU time by team and day."""
SQL = """
    SELECT account, tenant_id, started_ns // 86400000000000 * 86400000000000 AS day, SUM(output_tokens), SUM(gpu_ns)
    FROM read_parquet('{files}') GROUP BY ALL
"""


def make_store(folder: Path, cells: int) -> None:
    create_store(folder).close()
    layout = Layout(folder)
    database = Database(layout.database)
    dice, per_day = np.random.default_rng(1), max(1, cells // DAYS // ENGINES // CELLS_PER_STEP)
    for day in range(DAYS):
        shares = pa.concat_tables([make_shares(dice, engine, day, per_day) for engine in range(ENGINES)])
        with staging(layout, database) as files:
            files.add(SHARES, shares)
            files.add(LEDGER, make_ledger(shares))
            with database.writing() as connection:
                files.record(connection)
    database.close()


def make_shares(dice: np.random.Generator, engine: int, day: int, steps: int) -> pa.Table:
    """A day of one engine: steps of 8 to 40 ms, three tenants each, the popular ones more often."""
    rows = steps * CELLS_PER_STEP
    started = np.repeat(np.sort(dice.integers(BORDERS[day], BORDERS[day + 1], steps)), CELLS_PER_STEP)
    first = dice.zipf(1.6, steps) % TENANTS
    tenants = np.sort((first[:, None] + np.arange(CELLS_PER_STEP) * 3) % TENANTS, axis=1).ravel()
    seqs, chunk = dice.integers(1, 12, rows), dice.random(rows) < 0.1
    width = np.where(chunk, dice.integers(16, 512, rows), seqs)
    duration = np.repeat(dice.integers(8_000_000, 40_000_000, steps), CELLS_PER_STEP)
    numbers = {
        "step_seq": np.repeat(day * steps + np.arange(steps), CELLS_PER_STEP),
        "started_ns": started,
        "seqs": seqs,
        "rows": width,
        "output_tokens": np.where(chunk, 0, seqs),
        "cached_tokens": np.zeros(rows, np.int64),
        "attn": dice.integers(10**9, 10**12, rows),
        "kv_block_ns": seqs * dice.integers(8, 64, rows) * duration,
        "gpu_ns": duration * dice.integers(1, 10, rows) // 15,
    }
    texts: dict[str, Any] = {
        "engine_id": (f"engine-{engine}",),
        "run_id": (f"run-{engine}",),
        "account": ("tenant",),
        "tenant_id": sorted(TEAMS),
        "tier": ("batch", "fast", "standard"),
        "phase": ("decode", "prefill"),
    }
    codes = {"tenant_id": tenants, "tier": tenants % 3, "phase": chunk.astype(np.int64)}
    columns: dict[str, Any] = {name: pa.array(values) for name, values in numbers.items()}
    for name, words in texts.items():
        columns[name] = pa.array(words, pa.string()).take(pa.array(codes.get(name, np.zeros(rows, np.int64))))
    return pa.table([columns[name] for name in SHARES.schema.names], schema=SHARES.schema)


def make_ledger(shares: pa.Table) -> pa.Table:
    """The day's ledger lines: what a minute's steps of an engine add up to, and the rest of the minute as idle."""
    first = shares.column("started_ns")[0].as_py() // DAY_NS * DAY_NS
    minutes = range(first, first + DAY_NS + 1, MINUTE_NS)
    keys = ("engine_id", "account", "tenant_id", "tier", "phase")
    sums = ("gpu_ns", "output_tokens", "kv_block_ns")
    lines = roll_up(shares.to_batches(), keys, sums, "started_ns", minutes).rename_columns({"started_ns": "minute_ns"})
    idle = lines.group_by(["minute_ns", "engine_id"]).aggregate([("gpu_ns", "sum")])
    left = pc.subtract(MINUTE_NS, idle.column("gpu_ns_sum"))
    gaps = complete(idle.select(["minute_ns", "engine_id"]), account="idle", gpu_ns=left)
    return pa.concat_tables([complete(lines), gaps])


def complete(lines: pa.Table, **columns: Any) -> pa.Table:
    """Lines with all columns of the ledger; texts and counts that are not given are the same everywhere."""
    constants = {"host": "h1", "gpu_type": "h100-sxm", "model": "llama-3-8b", "basis": "step", "account": "idle"}
    for field in LEDGER.schema:
        if field.name in lines.column_names:
            continue
        value = columns.get(field.name, constants.get(field.name, "" if field.type == pa.string() else 0))
        column = value if isinstance(value, pa.ChunkedArray) else pa.repeat(pa.scalar(value, field.type), len(lines))
        lines = lines.append_column(field.name, column)
    return lines.select(LEDGER.schema.names).cast(LEDGER.schema)


def from_ledger(folder: Path) -> Answer:
    return by_team(scanned(folder, LEDGER))


def from_shares(folder: Path) -> Answer:
    return by_team(scanned(folder, SHARES))


def scanned(folder: Path, table: Table) -> Iterator[tuple[str, str, int, int, int]]:
    columns = ("account", "tenant_id", table.time, *SUMS)
    with open_store(folder) as store:
        batches = store.scan(table, columns, BORDERS[0], BORDERS[-1], coded=True)
        sums = roll_up(batches, ("account", "tenant_id"), SUMS, table.time, BORDERS)
    return zip(*(sums.column(name).to_pylist() for name in columns), strict=True)


def from_report(folder: Path) -> Answer:
    """What `farebox report --by tenant,day --format csv` does: books, bill and text."""
    period = Period.between(BORDERS[0], BORDERS[-1])
    with open_store(folder) as store:
        bill = build_report(load_books(store, period, hourly=False), period, ("tenant", "day"), rate=Decimal("3.99"))
    days = {span.name: span.from_ns for span in period.days()}
    tenants = [line for line in bill.lines if line.account == "tenant"]
    if not to_csv(bill).count("\n") > len(tenants):
        sys.exit("the text lacks lines")
    keys = ((line, *line.keys) for line in tenants)
    return by_team(("tenant", tenant, days[day], line.output_tokens, line.gpu_ns) for line, tenant, day in keys)


def from_duckdb(folder: Path) -> Answer:
    import duckdb

    return by_team(duckdb.sql(SQL.format(files=folder / "archive/shares/*/*.parquet")).fetchall())


def by_team(rows: Iterable[tuple[str, str, int, int, int]]) -> Answer:
    """Sums by (team, day) of the tenants' rows."""
    answer: Answer = {}
    for account, tenant, at_ns, tokens, gpu_ns in rows:
        if account == "tenant":
            key = f"{TEAMS[tenant]} day {(at_ns - START_NS) // DAY_NS}"
            so_far = answer.get(key, (0, 0))
            answer[key] = (so_far[0] + int(tokens), so_far[1] + int(gpu_ns))
    return answer


ANSWERS = {"report": from_report, "ledger": from_ledger, "shares": from_shares, "duckdb": from_duckdb}
TRIES = 5


def measure(name: str, folder: Path) -> None:
    """Answer a few times in this process; print the fastest, its processor time, the peak of memory, and the answer."""
    tries: list[tuple[float, float]] = []
    for _ in range(TRIES):
        start, cpu = time.perf_counter(), time.process_time()
        answer = ANSWERS[name](folder)
        tries.append((time.perf_counter() - start, time.process_time() - cpu))
    print(json.dumps({"seconds": min(tries), "peak": peak_bytes(), "answer": sorted(answer.items())}))


def peak_bytes() -> int:
    """The most memory that this process held; Linux tells it of the program alone, getrusage also of who started it."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def compare(folder: Path) -> None:
    found = {}
    for name in ANSWERS:
        command = [sys.executable, __file__, "--measure", name, str(folder)]
        found[name] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        wall, cpu = found[name]["seconds"]
        print(f"{name:8} {wall:7.3f} s  processors {cpu:7.3f} s  peak {found[name]['peak'] / 2**20:5.0f} MiB")
    if any(each["answer"] != found["duckdb"]["answer"] for each in found.values()):
        sys.exit("the answers differ")
    for name in ("report", "shares"):
        seconds = zip(found[name]["seconds"], found["duckdb"]["seconds"], strict=True)
        wall, cpu = (mine / theirs for mine, theirs in seconds)
        print(f"{name} / duckdb: {wall:.2f} by the clock, {cpu:.2f} by processor time")
    print(f"the same {len(found['shares']['answer'])} sums, to the last nanosecond")


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], Path(sys.argv[3]))
        return
    cells = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[2] if len(sys.argv) > 2 else temporary, "store")
        if not folder.exists():
            make_store(folder, cells)
        size = sum(path.stat().st_size for path in folder.glob("archive/*/*/*.parquet"))
        print(f"{cells:,} cells, {size / 2**20:.0f} MiB of Parquet")
        compare(folder)


if __name__ == "__main__":
    main()
