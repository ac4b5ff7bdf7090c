"""Retention: whole UTC days of one table go, and nothing else changes."""

import pytest
from click.testing import CliRunner

from farebox.cli.app import app
from farebox.events import LEDGER, SHARES, STEPS
from farebox.storage.errors import ArchiveBusyError
from farebox.storage.layout import DAY_NS
from farebox.storage.store import create_store, open_store

HOUR = 3_600_000_000_000


@pytest.fixture
def filled(tmp_path, server):
    """A run of six days, an hour between two steps."""
    run = server(gap_ns=HOUR)
    batch = run.batch(140, ended=True)
    with create_store(tmp_path / "s") as store:
        store.append_archive(batch)
    return tmp_path / "s", batch, run.now_ns


def test_days_before_the_last_so_many_go_and_bills_stay(filled, said, told):
    path, batch, now_ns = filled
    with create_store(path) as store:
        (would,) = store.forget({STEPS: 2}, now_ns, dry_run=True)
        assert said(STEPS, store.read(STEPS)) == told(STEPS, [batch])
        assert store.forget({STEPS: 2}, now_ns) == [would]
        first = (now_ns // DAY_NS - 1) * DAY_NS
        left = [at for at in batch.steps["started_ns"].to_pylist() if at >= first]
        assert sorted(store.read(STEPS)["started_ns"].to_pylist()) == left
        assert would.rows == batch.steps.num_rows - len(left) > 0
        for table in (SHARES, LEDGER):
            assert said(table, store.read(table)) == told(table, [batch])
        assert store.forget({STEPS: 2}, now_ns)[0].rows == 0
        assert store.warnings == []
    days = {folder.name for folder in (path / "archive/steps").iterdir() if any(folder.iterdir())}
    assert len(days) == 2


def test_a_reader_misses_nothing(filled):
    path, batch, now_ns = filled
    with create_store(path) as store, open_store(path) as reader:
        rows = reader.scan(STEPS)
        count = next(rows).num_rows
        with pytest.raises(ArchiveBusyError):
            store.forget({STEPS: 1}, now_ns)
        assert count + sum(batch.num_rows for batch in rows) == batch.steps.num_rows


def test_on_the_command_line(filled):
    path, batch, _ = filled
    done = CliRunner().invoke(app, ["archive", str(path), "--keep", "shares=30d", "--keep", "steps=36500"])
    assert done.exit_code == 0, done.output
    assert f"shares: {batch.shares.num_rows:,} rows before " in done.stdout
    with open_store(path) as store:
        assert store.read(SHARES).num_rows == 0
        assert store.read(STEPS).num_rows == batch.steps.num_rows
    for wrong in ("songs=3d", "ledger=3d", "steps", "steps=0d", "steps=-1"):
        assert CliRunner().invoke(app, ["archive", str(path), "--keep", wrong]).exit_code == 2
