"""Lets the scraping tests import `scrape_pages` beside them, and take their time on a busy machine."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
settings.register_profile("scrape", deadline=None)
settings.load_profile("scrape")
