"""What the tests of spools share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def collector(tmp_path):
    from spooled_telling import Collector

    made = Collector(tmp_path / "s")
    yield made
    made.store.close()
