"""Lets the costing tests import `costing_helpers` beside them, and take their time on a busy machine."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
settings.register_profile("costing", deadline=None)
settings.load_profile("costing")
