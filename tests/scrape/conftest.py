"""Lets the scraping tests import `scrape_pages` beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
