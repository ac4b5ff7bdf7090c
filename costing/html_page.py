"""The frame of every HTML file that Farebox writes: one look, no script, nothing to load."""

from __future__ import annotations

from collections.abc import Sequence

from .html_charts import safe
from .html_style import STYLE


def html_page(title: str, sections: Sequence[str], style: str = "") -> str:
    """A whole page of some sections, empty ones left out; `style` is CSS on top of the common one."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{safe(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n"
        + "\n".join(filter(None, sections))
        + "\n</body>\n</html>\n"
    )
