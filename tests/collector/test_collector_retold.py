"""A run that is told again with other content: what is recorded stays, what contradicts it is kept aside and said."""

import json
from dataclasses import replace

import pytest

from farebox.collector.checks.spools import check_aside
from farebox.collector.embedded import EmbeddedEngine, record
from farebox.engine.pace import Pace
from farebox.engine.workloads.synthetic import generate
from farebox.events import LEDGER, REQUESTS, SHARES, STEPS
from farebox.roofline import Replica, gpu, model
from farebox.storage.store import create_store

START_NS = 1_767_225_600_000_000_000
CONFIG = EmbeddedEngine(Replica(gpu("h100"), model("llama-3-8b"))).config(["retold"])
WAYS = {
    "all at once": {},
    "step by step": {"fast_cap": 200},
    "in its time": {"pace": 4000.0},
}


def tell(path, way, **changes):
    pace = Pace(way["pace"]) if "pace" in way else None
    config = replace(CONFIG, **{name: value for name, value in way.items() if name != "pace"}, **changes)
    with create_store(path) as store:
        assert record(config, generate(1, START_NS, 60), store, pace=pace)
        return {table: store.read(table).sort_by(table.key[0]) for table in (STEPS, SHARES, REQUESTS, LEDGER)}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_is_told_otherwise_is_kept_aside(tmp_path, capsys, way):
    before = tell(tmp_path / "s", way)
    assert tell(tmp_path / "s", way) == before
    assert not (tmp_path / "s/aside").exists()
    assert tell(tmp_path / "s", way, max_num_seqs=2) == before
    (file,) = (tmp_path / "s/aside").iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["why"] for line in lines} == {"it was told before with other content"}
    assert {next(iter(line["event"])) for line in lines} == {"steps", "shares", "requests"}
    assert f"{len(lines):,} rows of run {CONFIG.run_id} are recorded with other content" in capsys.readouterr().err
    assert [check.level for check in check_aside(tmp_path / "s")] == ["bad"]
