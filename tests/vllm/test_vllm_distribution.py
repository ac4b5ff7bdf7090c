"""farebox-vllm is a distribution of its own: of the standard library only, and with farebox's own writer of spools."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "plugins" / "vllm"
SOURCES = sorted((PLUGIN / "farebox_vllm").rglob("*.py"))
PROJECT = tomllib.loads((PLUGIN / "pyproject.toml").read_text())


@pytest.mark.parametrize("name", ["lines.py", "writer.py"])
def test_the_spools_writer_is_the_one_of_farebox(name):
    mine, theirs = PLUGIN / "farebox_vllm" / "spool" / name, ROOT / "storage" / "spool" / name
    assert mine.read_bytes() == theirs.read_bytes(), f"cp {theirs.relative_to(ROOT)} {mine.relative_to(ROOT)}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PLUGIN)))
def test_it_imports_the_standard_library_and_itself(path):
    tree = ast.parse(path.read_text())
    names = {
        alias.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
    names |= {(node.module or "").partition(".")[0] for node in froms}
    top = [node.module for node in tree.body if isinstance(node, ast.ImportFrom) and not node.level]
    assert names - set(sys.stdlib_module_names) <= {"vllm"} and "vllm.platforms" not in top


def test_it_needs_nothing_and_holds_only_itself():
    assert PROJECT["project"]["dependencies"] == []
    packages = {".".join(path.parent.relative_to(PLUGIN).parts) for path in SOURCES}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages
    assert PROJECT["project"]["entry-points"] == {"vllm.general_plugins": {"farebox": "farebox_vllm:register"}}


def test_it_has_the_license_of_farebox():
    assert (PLUGIN / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
