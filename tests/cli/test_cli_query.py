"""`farebox query`, `export` and `backup`: data on standard output, words beside it, files whole or not there."""

import csv
import io
import json
import stat

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import farebox
from farebox.cli.app import app
from farebox.storage.store import create_store


def invoke(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def test_every_form_tells_the_same(recorded, tmp_path):
    text = "SELECT tenant_id, sum(gpu_ns) AS gpu_ns, min(date) AS day FROM shares GROUP BY 1 ORDER BY 1"
    asked = [("query", text, "--store", recorded, "--format", form) for form in ("csv", "json")]
    rows = list(csv.DictReader(io.StringIO(invoke(*asked[0]).stdout)))
    told = json.loads(invoke(*asked[1]).stdout)
    assert [{name: str(value) for name, value in row.items()} for row in told] == rows
    done = invoke("query", text, "--store", recorded, "--format", "parquet", "-o", tmp_path / "x.parquet")
    assert done.exit_code == 0, done.output
    written = pq.read_table(tmp_path / "x.parquet").to_pylist()
    assert [int(row["gpu_ns"]) for row in written] == [row["gpu_ns"] for row in told]
    shown = invoke("query", text, "--store", recorded).stdout.split()
    assert {str(row["gpu_ns"]) for row in told} <= set(shown)
    with farebox.open_store(recorded) as store:
        assert sum(row["gpu_ns"] for row in told) == sum(store.shares().arrow()["gpu_ns"].to_pylist())


def test_a_long_table_says_that_it_goes_on(recorded):
    done = invoke("query", "FROM steps ORDER BY step_seq", "--store", recorded)
    assert len(done.stdout.splitlines()) == 201
    assert "--format csv prints them all" in done.stderr
    assert invoke("query", "FROM steps LIMIT 0", "--store", recorded, "--format", "json").stdout == "[]\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("query", "DROP TABLE steps"), "one SELECT"),
        (("query", "SELECT * FROM '/etc/passwd'"), "does not exist"),
        (("query", "FROM read_text('/etc/passwd')"), "disabled"),
        (("query", "FROM steps", "--format", "parquet"), "-o FILE"),
        (("query", "FROM steps", "--from", "2026-01-01T10:00"), "needs a zone"),
    ],
)
def test_what_cannot_be_asked_is_told_with_exit_code_2(recorded, args, words):
    done = invoke(*args, "--store", recorded)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr


def test_export_writes_what_pandas_reads(recorded, tmp_path):
    import pandas as pd

    done = invoke("export", recorded, "requests", "-o", tmp_path / "r.parquet")
    assert done.exit_code == 0, done.output
    with farebox.open_store(recorded) as store:
        kept = store.requests().arrow()
    assert pq.read_table(tmp_path / "r.parquet").equals(kept)
    assert stat.S_IMODE((tmp_path / "r.parquet").stat().st_mode) == 0o600
    frame = pd.read_csv(io.StringIO(invoke("export", recorded, "requests").stdout))
    assert frame["finished_ns"].tolist() == kept["finished_ns"].to_pylist()
    tenant = kept["tenant_id"][0].as_py()
    rows = json.loads(invoke("export", recorded, "shares", "--tenant", tenant, "--format", "json").stdout)
    assert {row["tenant_id"] for row in rows} == {tenant}
    assert json.loads(invoke("export", recorded, "shares", "--to", "2020-01-01", "--format", "json").stdout) == []


def test_a_failed_export_leaves_nothing(recorded, tmp_path):
    assert invoke("export", recorded, "gpu", "--tenant", "x", "-o", tmp_path / "g.csv").exit_code == 2
    assert invoke("export", recorded, "steps", "-o", tmp_path / "nowhere" / "s.csv").exit_code == 2
    assert invoke("export", recorded, "steps", "-o", tmp_path / "s.txt").exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flags", [(), ("--copy",)])
def test_a_backup_of_a_live_store_is_a_store_with_the_same_rows(store, tmp_path, flags):
    (tmp_path / "to").mkdir()
    with create_store(store):
        done = invoke("backup", store, tmp_path / "to" / "b ü", *flags)
    assert done.exit_code == 0, done.output
    assert {path.name for path in (tmp_path / "to").iterdir()} == {"b ü"}
    with farebox.open_store(store) as opened, create_store(tmp_path / "to" / "b ü") as copy:
        for table in ("runs", "steps", "shares", "requests", "ledger"):
            with farebox.open_store(copy.path) as other:
                assert getattr(opened, table)().arrow() == getattr(other, table)().arrow()
    linked = [path.stat().st_nlink for path in (tmp_path / "to" / "b ü").rglob("*.parquet")]
    assert linked
    assert all((count == 1) == bool(flags) for count in linked)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "to" / "b ü").rglob("*")}
    assert modes <= {0o700, 0o600}
    assert invoke("backup", store, tmp_path / "to" / "b ü").exit_code == 2


def test_an_archive_may_be_elsewhere(inside, tmp_path):
    large = tmp_path / "large"
    assert f"the archive is file://{large}" in inside("database", "s", "--archive", f"file://{large}").stdout
    inside("run", "--trace", "synthetic", "--gpu", "h100", "--model", "llama-3-8b", "--store", "s")
    assert list(large.glob("steps/date=*/*.parquet"))
    assert "2000" in inside("query", "SELECT count(*) AS n FROM requests", "--store", "s", "--format", "csv").stdout
    inside("database", "s", check=2)
