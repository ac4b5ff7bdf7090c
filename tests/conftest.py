"""What all tests share."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of traces, timings and cases beside the checkout; tests that need it skip without it."""
    folder = Path(os.environ.get("FAREBOX_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip("needs ../shared (or FAREBOX_SHARED): recorded traces and timings are not part of the repository")
    return folder
