"""What all tests share. `pytest --hypothesis-profile=thorough` tries properties with forty times as many examples."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))  # for `properties`, `served_engine` and `tui_apps`

# How long an example takes says more about the machine than about the code.
PATIENT = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("usual", PATIENT)
settings.register_profile("thorough", PATIENT, max_examples=2000)
settings.load_profile("usual")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores: many tests wait for other processes and for clocks."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of traces, timings and cases beside the checkout; tests that need it skip without it."""
    folder = Path(os.environ.get("FAREBOX_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip("needs ../shared (or FAREBOX_SHARED): recorded traces and timings are not part of the repository")
    return folder
