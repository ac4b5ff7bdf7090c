"""The house stands as described: packages, floors, light starts."""

import subprocess
import sys
import tomllib
from importlib.metadata import files, version
from pathlib import Path

import farebox

ROOT = Path(__file__).resolve().parents[2]
NOT_PACKAGES = {"tests", "benchmarks", "docs", "examples", "plugins", "scripts", "build"}
HEAVY = ("pandas", "pyarrow", "numpy", "sqlalchemy", "textual", "duckdb", "rich", "pynvml", "psutil", "httpx")


def modules_after(code: str) -> set[str]:
    """Top-level modules that are loaded once `code` has run in a process of its own."""
    show = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{show}"], capture_output=True, text=True, check=True, cwd=ROOT.anchor
    )
    return set(done.stdout.split())


def test_the_listed_packages_are_the_folders():
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    folders = {path.parent.relative_to(ROOT) for path in ROOT.rglob("__init__.py") if not _hidden(path)}
    found = {".".join(("farebox", *folder.parts)) for folder in folders if not _apart(folder)}
    assert listed == found


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(ROOT).parts)


def _apart(folder: Path) -> bool:
    return bool(folder.parts) and folder.parts[0] in NOT_PACKAGES


def test_the_wheel_holds_only_farebox():
    tops = {path.parts[0] for path in files("farebox") or [] if path.parts[0] not in ("..", "__pycache__")}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"farebox"}


def test_no_top_level_engine_storage_or_tui_can_be_imported():
    code = "from importlib.util import find_spec as f; print([n for n in ('engine', 'storage', 'tui', 'cli') if f(n)])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.anchor)
    assert done.stdout.strip() == "[]"


def test_the_version_comes_from_one_place():
    assert farebox.__version__ == version("farebox")


def test_importing_farebox_loads_nothing_heavy():
    assert not modules_after("import farebox") & set(HEAVY)


def test_help_loads_nothing_heavy():
    code = "import farebox.cli.app as cli\nfor name in cli.app.commands: cli.app.commands[name].get_short_help_str()"
    assert not modules_after(code) & set(HEAVY)


def test_the_screen_paints_before_anything_heavy_is_loaded():
    assert not modules_after("import farebox.tui.app") & {"pandas", "pyarrow", "numpy", "sqlalchemy", "duckdb"}


def test_no_event_record_holds_a_float():
    from farebox.events import EVENT_TABLES, SETTING_TABLES

    kinds = {column.kind for table in (*EVENT_TABLES, *SETTING_TABLES) for column in table.columns}
    assert kinds <= {"int", "str", "ints", "strs"}


def test_every_column_has_a_meaning():
    from farebox.events import EVENT_TABLES, SETTING_TABLES

    assert [c for table in (*EVENT_TABLES, *SETTING_TABLES) for c in table.columns if not c.doc] == []
