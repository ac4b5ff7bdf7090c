"""`farebox.open_store`: recent and archived rows in one answer, exact in pandas, Arrow, Polars and DuckDB."""

import shutil
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import farebox
from farebox.events import GPU_SAMPLES, LEDGER, REQUESTS, SHARES, STEPS, GpuSample
from farebox.storage.instants import instant_ns
from farebox.storage.source import MissingRowsWarning
from farebox.storage.store import create_store

MINUTE = 60_000_000_000
TABLES = (STEPS, SHARES, REQUESTS, LEDGER)


@pytest.fixture(scope="module")
def filled(tmp_path_factory, server):
    """A store with rows of two dates in the archive, archived copies in hot, and rows that only hot has."""
    run = server(gap_ns=MINUTE)
    done = [run.batch(40), run.batch(40), run.batch(40)]
    other = server("e1", gap_ns=MINUTE).batch(30, ended=True)
    path = tmp_path_factory.mktemp("reading") / "a store, 100 % ünï?#[0]"
    with create_store(path) as store:
        store.append_archive(done[0])
        store.append_archive(other)
        store.append(done[1])
        store.roll()
        store.append(done[2])
    return path, [*done, other]


@pytest.fixture
def breakable(filled, tmp_path):
    """A copy of it."""
    return shutil.copytree(filled[0], tmp_path / "copy ü")


def test_hot_and_archived_rows_come_once(filled, said, told):
    path, done = filled
    with farebox.open_store(path) as store:
        for table in TABLES:
            answer = getattr(store, table.name)()
            assert said(table, answer.arrow()) == told(table, done)
            assert said(table, answer.reader().read_all()) == told(table, done)
            assert said(table, answer.relation().to_arrow_table()) == told(table, done)
            assert len(answer.df()) == answer.arrow().num_rows == len(pl.DataFrame(answer.arrow()))
            rows = answer.arrow()
            keys = list(zip(*(rows.column(name).to_pylist() for name in table.sort), strict=True))
            assert keys == sorted(keys)


def test_limits_of_time_engine_and_tenant(filled):
    path, done = filled
    steps = [step for batch in done for step in STEPS.from_arrow(batch.steps)]
    shares = [share for batch in done for share in SHARES.from_arrow(batch.shares)]
    start = sorted(step.started_ns for step in steps)[50]
    end = start + 40 * MINUTE
    with farebox.open_store(path) as store:
        found = STEPS.from_arrow(store.steps(start, end, engine="e0").arrow())
        assert found == sorted(s for s in steps if s.engine_id == "e0" and start <= s.started_ns < end)
        at = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=start // 1000)
        first_ns = instant_ns(at)
        assert store.steps(at, engine="e0").arrow()["started_ns"].to_pylist() == sorted(
            s.started_ns for s in steps if s.engine_id == "e0" and s.started_ns >= first_ns
        )
        mine = {share[:3] for share in shares if share.tenant_id == "voice"}
        assert {s[:3] for s in STEPS.from_arrow(store.steps(tenant="voice").arrow())} == mine
        assert mine
        assert SHARES.from_arrow(store.shares(tenant="voice", engine="e1").arrow()) == [
            share for share in sorted(shares) if share.tenant_id == "voice" and share.engine_id == "e1"
        ]
        assert store.requests(tenant="x' OR 1=1 --").relation().fetchall() == []
        assert store.ledger("2026-01-02", "2026-01-03").arrow()["gpu_ns"].to_pylist()
        assert store.ledger(date(2027, 1, 1)).df().empty


def test_pandas_keeps_integers_exact_beside_nulls(tmp_path):
    big = 9_007_199_254_740_993
    sample = GpuSample(
        "h", "GPU-0", 1_378_260_489_959_724_229, 0, "H100", None, "ok", None, big, None, None, 5, None, None, None,
        None, None, None, None,
    )  # fmt: skip
    with create_store(tmp_path / "s") as store:
        store.append_samples(GPU_SAMPLES, GPU_SAMPLES.to_arrow([sample, sample._replace(at_ns=7, mem_used=None)]))
    with farebox.open_store(tmp_path / "s") as store:
        frame = store.gpu(host="h", gpu="GPU-0").df()
    assert [int(x) if x is not pd.NA else None for x in frame["mem_used"]] == [None, big]
    assert str(frame["mem_used"].dtype) == str(frame["at_ns"].dtype) == "Int64"
    assert str(frame["at"].dtype) == "datetime64[ns, UTC]"
    assert frame["at"].iloc[1].value == frame["at_ns"].iloc[1] == 1_378_260_489_959_724_229
    text = frame.to_csv(index=False)
    assert str(big) in text
    assert "1378260489959724229" in text


def test_sql_sees_all_tables_and_sums_are_exact(filled):
    path, done = filled
    shares = pa.concat_tables([batch.shares for batch in done])
    with farebox.open_store(path) as store:
        asked = store.query(
            "SELECT sum(gpu_ns) AS gpu_ns, sum(CAST(gpu_ns AS HUGEINT)) * 1000000000 AS more FROM shares"
        )
        paid = sum(shares["gpu_ns"].to_pylist())
        frame = asked.df()
        assert str(frame["gpu_ns"].dtype) == "Int64"
        assert frame.iloc[0].tolist() == [paid, paid * 10**9]
        days = "SELECT date, count(*) AS n FROM steps WHERE date >= DATE '2026-01-02' GROUP BY ALL"
        count = sum(1 for b in done for at in b.steps["started_ns"].to_pylist() if at >= instant_ns("2026-01-02"))
        assert store.query(days).arrow().to_pylist() == [{"date": date(2026, 1, 2), "n": count}]
        assert store.query(days, end="2026-01-02").arrow().num_rows == 0
        assert store.query("FROM steps", engine="e1").arrow().num_rows == 30
        assert {"steps", "tenants"} <= set(store.query("SHOW TABLES").arrow()["name"].to_pylist())


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM steps", "SELECT 1; SELECT 2", "CREATE TABLE x AS SELECT 1", "COPY steps TO '/tmp/stolen.csv'",
        "ATTACH '/tmp/x.db'", "SET memory_limit = '1TB'", "INSTALL httpfs", "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'", "SELECT * FROM glob('/*')", "SELECT * FROM path", "SELEC", "FROM nowhere", "",
        "SELECT nothing FROM steps",
    ],
)  # fmt: skip
def test_sql_only_reads_and_only_the_store(filled, text):
    path, _ = filled
    with farebox.open_store(path) as store, pytest.raises(farebox.InputError):
        store.query(text).arrow()


def test_days_and_engines_that_are_not_asked_for_are_not_opened(breakable):
    """Proved by breaking the files that must not be looked at: of the same length, so that only reading tells."""
    path = breakable
    for file in (path / "archive/steps/date=2026-01-01").glob("*.parquet"):
        file.write_bytes(b"x" * file.stat().st_size)
    with farebox.open_store(path) as store:
        assert (
            store.query("SELECT count(*) AS n FROM steps WHERE date = DATE '2026-01-02'").arrow()["n"][0].as_py() > 40
        )
        since = instant_ns("2026-01-02T00:00:00Z")
        late = store.query(f"SELECT min(started_ns) AS at FROM steps WHERE started_ns >= {since}").arrow()
        assert late["at"][0].as_py() >= since
        assert store.warnings == []


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_file_is_named_and_the_rest_is_answered(breakable, damage):
    path = breakable
    bad = max((path / "archive/steps/date=2026-01-02").glob("*.parquet"), key=lambda file: file.stat().st_size)
    with farebox.open_store(path) as store:
        lost = store.query("SELECT count(*) FROM steps").arrow()
    content = bytearray(bad.read_bytes())
    content = content[:-1] if damage == "cut" else content[:4] + bytes(len(content) - 200) + content[-196:]
    bad.write_bytes(content)
    with farebox.open_store(path) as store:
        with pytest.warns(MissingRowsWarning, match=bad.name):
            found = store.query("SELECT count(duration_ns), sum(duration_ns) FROM steps").arrow()
        assert 0 < found[0][0].as_py() < lost[0][0].as_py()
        assert len(store.warnings) == 1


def test_reading_survives_a_writer_that_merges_files(breakable):
    path = breakable
    with farebox.open_store(path) as store:
        before = store.steps().relation()
        with create_store(path) as writer:
            assert writer.compact() == 0
        assert len(before.fetchall()) == 150
    with create_store(path) as writer:
        assert writer.compact() > 0


def test_what_it_says_of_itself(filled):
    path, _ = filled
    with farebox.open_store(path) as store:
        assert "2 runs of 2 engines, 2026-01-01T23:59:00Z to " in repr(store)
        assert repr(store.steps("2026-01-01", engine="e0")).startswith(
            "<steps from 2026-01-01T00:00:00Z to now, engine_id e0: .df()"
        )
        with pytest.raises(farebox.InputError, match="no column tokens"):
            store.steps(columns=["tokens"])
        with pytest.raises(farebox.InputError, match="there are rates"):
            store.settings("songs")
        assert store.settings("rates").df().empty


@pytest.mark.parametrize(
    "value", [datetime(2026, 1, 1), "2026-01-01T00:00", "yesterday", 1.5, None, pd.NaT, pd.Timestamp(0), 2**63, "9999"]
)
def test_what_is_no_instant_is_refused(value):
    with pytest.raises(farebox.InputError):
        instant_ns(value)


@given(st.integers(0, 2**62), st.integers(-14 * 60, 14 * 60))
def test_instants_are_exact_from_any_zone(at_ns, minutes):
    zone = timezone(timedelta(minutes=minutes))
    stamp = pd.Timestamp(at_ns, tz="UTC").tz_convert(zone)
    assert instant_ns(stamp) == instant_ns(at_ns) == instant_ns(stamp.isoformat()) == at_ns
    whole = at_ns // 1000 * 1000
    assert instant_ns(datetime.fromtimestamp(0, UTC).astimezone(zone) + timedelta(microseconds=whole // 1000)) == whole


def test_dates_are_midnights_in_utc():
    assert instant_ns("2026-01-01") == instant_ns(date(2026, 1, 1)) == instant_ns("2026-01-01T00:00:00Z")


def test_importing_farebox_takes_a_moment():
    code = "import time; t = time.process_time(); import farebox; print(time.process_time() - t)"
    took = min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3))
    assert took < 0.1
