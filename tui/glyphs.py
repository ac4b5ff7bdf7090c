"""The signs that figures are drawn with, and their stand-ins where a terminal knows ASCII only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .literal import literal

_TO_ASCII = {
    "·": "|",
    "–": "-",
    "×": "x",
    "▲": "!",
    "≥": ">=",
    "≤": "<=",
    "»": ">>",
    "│": "|",
    "←": "<-",
    "→": "->",
    "↑": "^",
    "↓": "v",
    "…": "..",
    "⁻": "-",
    "³": "3",
    "€": "EUR ",
    "£": "GBP ",
    "¥": "JPY ",
}
_TRANSLATE = str.maketrans(_TO_ASCII)


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of signs. `levels` rise from the lowest visible one, `partial` begin to fill a cell of a bar."""

    levels: str
    partial: str
    full: str
    track: str
    rule: str
    signs: dict[str, str]
    ascii_only: bool

    def text(self, text: str) -> str:
        """Our own words, spelled with what the terminal has."""
        return text.translate(_TRANSLATE) if self.ascii_only else text

    def name(self, text: str) -> str:
        """A name from outside, shown literally."""
        return literal(text, self.ascii_only)

    def fit(self, text: str, width: int) -> str:
        """A name from outside in at most `width` cells, cut with a sign that it was cut."""
        return fit(self.name(text), width, self.signs["cut"])


UNICODE = Glyphs(
    levels="▁▂▃▄▅▆▇█",
    partial="╸",
    full="━",
    track="─",
    rule="─",
    signs={
        "live": "●",
        "idle": "○",
        "starting": "◌",
        "ended": "■",
        "lost": "✖",
        "cut": "…",
        "more": "▼",
        "none": "·",
        "warn": "▲",
    },
    ascii_only=False,
)
ASCII = Glyphs(
    levels="_.-:=+*#",
    partial="",
    full="#",
    track=".",
    rule="-",
    signs={
        "live": "*",
        "idle": "o",
        "starting": ".",
        "ended": "#",
        "lost": "x",
        "cut": "~",
        "more": "v",
        "none": ".",
        "warn": "!",
    },
    ascii_only=True,
)


def glyphs_for(encoding: str | None, ascii_only: bool = False) -> Glyphs:
    """The glyphs for a stream's encoding; ASCII when it is not a Unicode one, or when asked for."""
    unicode = (encoding or "").lower().replace("-", "").startswith("utf")
    return UNICODE if unicode and not ascii_only else ASCII


def terminal_encoding(encoding: str | None, environment: Mapping[str, str], forced_utf8: bool) -> str | None:
    """What a terminal can show, from the locale that the user set.

    In a C locale Python speaks UTF-8 all the same (`forced_utf8`, with an LC_CTYPE of its own making), and the terminal
    may not; the Linux console has no font for what Unicode draws with.
    """
    if environment.get("TERM") == "linux":
        return "ascii"
    if not forced_utf8 or environment.get("PYTHONUTF8") == "1":
        return encoding
    named = environment.get("LC_ALL") or environment.get("LANG") or "C"
    return encoding if "utf" in named.lower() else "ascii"


def fit(text: str, width: int, sign: str) -> str:
    """`text` in at most `width` terminal cells (wide characters take two), ended by `sign` when cut."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + sign if width > 0 else ""


def pad(text: str, width: int, right: bool = False) -> str:
    """`text` filled with spaces to `width` terminal cells, on the left when it is to stand `right`."""
    from rich.cells import cell_len

    space = " " * max(0, width - cell_len(text))
    return space + text if right else text + space
