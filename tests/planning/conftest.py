"""Stores to plan with, and the commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).parent))

from planning_helpers import config, record_into, traffic

from farebox.cli.app import app


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of one engine with few seats, where requests wait; nobody may change it."""
    return record_into(tmp_path_factory.mktemp("planned") / "small", config(max_num_seqs=4), traffic())


@pytest.fixture
def farebox() -> Callable[..., Result]:
    """Run `farebox …` in this process; the exit code is checked."""

    def call(*arguments: str, check: int = 0) -> Result:
        done = CliRunner().invoke(app, arguments, prog_name="farebox")
        assert done.exit_code == check, f"exit {done.exit_code}\n{done.output}\n{done.exception!r}"
        return done

    return call
