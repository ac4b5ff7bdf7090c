"""Lets these tests use the pages and fetchers of the scraping tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "scrape"))
