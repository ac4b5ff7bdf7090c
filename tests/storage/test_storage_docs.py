"""docs/data.md says what the files hold, and what it shows works; so does the notebook."""

import ast
import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from farebox.events import EVENT_TABLES, SETTING_TABLES
from farebox.storage.store import create_store

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/data.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
STRANGERS = [block for block in BLOCKS if "farebox" not in block]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, server):
    """Where `mystore` is: a run that crosses midnight, all of it archived."""
    at = tmp_path_factory.mktemp("docs")
    with create_store(at / "mystore") as store:
        run = server(gap_ns=10**9)
        store.append(run.batch(90))
        store.append(run.batch(90, ended=True))
    return at


def test_every_column_is_on_the_page_as_it_is_declared():
    made = runpy.run_path(str(ROOT / "docs/make_data.py"))
    assert PAGE.split(made["MARK"])[1].strip() == made["tables_text"]().strip(), "run `python docs/make_data.py`"


@pytest.mark.parametrize("block", STRANGERS, ids=lambda block: re.findall(r"import (\w+)", block)[0])
def test_strangers_read_the_files(folder, block):
    forbidden = "import sys; sys.modules['farebox'] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", forbidden + block], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "chat" in done.stdout or "00:00" in done.stdout


def test_there_is_one_for_pandas_duckdb_and_polars():
    assert [re.findall(r"import (\w+)", block) for block in STRANGERS] == [["pandas"], ["duckdb"], ["polars"]]


def test_what_the_page_shows_with_farebox_works(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for block in BLOCKS:
        if block not in STRANGERS:
            exec(compile(block, "data.md", "exec"), {})


def test_strangers_and_farebox_add_up_to_the_same(folder):
    import duckdb
    import pandas as pd
    import polars as pl

    import farebox

    files = f"{folder}/mystore/archive/shares"
    with farebox.open_store(folder / "mystore") as store:
        paid = sum(store.shares().arrow()["gpu_ns"].to_pylist())
    assert paid > 0
    assert pd.read_parquet(files)["gpu_ns"].sum() == paid
    assert pl.scan_parquet(f"{files}/*/*.parquet").select(pl.col("gpu_ns").sum()).collect().item() == paid
    assert duckdb.sql(f"SELECT sum(gpu_ns) FROM '{files}/*/*.parquet'").fetchall() == [(paid,)]


def test_the_notebook_runs(tmp_path, monkeypatch):
    """Cell by cell in one namespace, and what a cell ends with is shown, as Jupyter does it."""
    shutil.copy(ROOT / "examples/analysis.ipynb", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAREBOX_STORE", raising=False)
    cells = json.loads((tmp_path / "analysis.ipynb").read_text())["cells"]
    names: dict[str, object] = {}
    shown = [show(cell_code, names) for cell_code in ("".join(c["source"]) for c in cells if c["cell_type"] == "code")]
    assert len(shown) > 5
    assert any("idle" in text for text in shown)
    assert not any(cell.get("outputs") for cell in cells)


def show(code: str, names: dict[str, object]) -> str:
    """Run a cell and tell the value of its last line, if that is one."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return "" if last is None else repr(eval(compile(ast.Expression(last.value), "cell", "eval"), names))


def test_instants_are_told_from_durations_by_their_unit():
    """pandas gets a datetime beside each of them; a duration is no date."""
    columns = [column for table in (*EVENT_TABLES, *SETTING_TABLES) for column in table.columns]
    assert [c.name for c in columns if c.unit == "ns" and "UTC" in c.doc] == []
    assert all(c.name.endswith("_ns") for c in columns if c.is_instant)
    assert all(
        c.is_instant for table in (*EVENT_TABLES, *SETTING_TABLES) for c in table.columns if c.name == table.time
    )
