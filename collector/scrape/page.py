"""A metrics page: tolerant reading of Prometheus' text format and of OpenMetrics. One bad line loses one line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from ...errors import FareboxError

MOST_LINES = 200_000
MOST_REMEMBERED = 20
MOST_KEPT = 4096
CONFLICT = "is on the page twice with different values"
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_HELP = re.compile(r"#\s*HELP\s+(\S+)\s+(.*)")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,|(?=\}))')
_REST = re.compile(r"\s*(\S+)(?:\s+[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)?\s*(?:#.*)?")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NO_NUMBER = re.compile(r"[-+]?(?:nan|inf|infinity)", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "\\": "\\", '"': '"'}


class NotAPageError(FareboxError, ValueError):
    """What came is no metrics page at all."""


class Sample(NamedTuple):
    """One line: labels and value; the value is None where the page says NaN or an infinity."""

    labels: dict[str, str]
    value: float | None


class Series(NamedTuple):
    """What a line's value is of."""

    name: str
    labels: dict[str, str]
    key: frozenset[tuple[str, str]]
    """The labels, in whichever order they came."""


class BadLine(NamedTuple):
    """A line that could not be read."""

    number: int
    text: str


@dataclass(frozen=True)
class Page:
    """The samples of a page by name, as scraped (`_total`, `_bucket`, `_sum` included)."""

    samples: dict[str, list[Sample]] = field(default_factory=dict[str, list[Sample]])
    bad: list[BadLine] = field(default_factory=list[BadLine])
    """The first lines that could not be read."""
    bad_lines: int = 0
    conflicts: set[str] = field(default_factory=set[str])
    """Names that the page gives two values of the same labels: nothing of them is believed."""
    was_json: bool = False
    """The page came as one JSON string."""
    is_cut: bool = False
    """The last line has no end, which the format asks for: it may be half a number."""
    help: dict[str, str] = field(default_factory=dict[str, str])
    """What the page says of its families."""

    def __contains__(self, name: str) -> bool:
        return name in self.samples

    def get(self, name: str) -> list[Sample]:
        """The samples of a name; none where the page contradicts itself."""
        return [] if name in self.conflicts else self.samples.get(name, [])

    @property
    def trouble(self) -> str | None:
        """What of the page could not be read or believed, in plain words."""
        told: list[str] = []
        if self.bad_lines:
            first = self.bad[0]
            told.append(f"{self.bad_lines} unreadable lines were left out, the first is line {first.number}")
        told += [f"{name} {CONFLICT}" for name in sorted(self.conflicts)]
        return "; ".join(told) or None


def read_page(text: str) -> Page:
    """Read a page. Lines that do not follow the format are counted and left out, equal lines count once.

    Raises NotAPageError for HTML, JSON (but for a page in a JSON string) and pages of too many lines.
    """
    text, was_json = _unwrap(text)
    reader = _Reader()
    for number, line in enumerate(_lines(text), 1):
        if number > MOST_LINES:
            raise NotAPageError(f"the page has more than {MOST_LINES} lines: ask the engine for fewer series")
        if line.strip() == "# EOF":
            break
        reader.line(number, line)
    is_cut = not text.endswith("\n") and text.rpartition("\n")[2].strip() not in ("", "# EOF")
    return Page(reader.samples, reader.bad, reader.bad_lines, reader.conflicts, was_json, is_cut, reader.help)


def read_json(text: str) -> Any:
    """The JSON value that an answer holds; NotAPageError when it holds none."""
    try:
        return json.loads(text)
    except ValueError:
        raise NotAPageError("the answer is neither a metrics page nor JSON") from None


def _unwrap(text: str) -> tuple[str, bool]:
    head = text.lstrip()[:1]
    if head == '"':
        inner = read_json(text)
        return (inner, True) if isinstance(inner, str) else ("", True)
    if head in ("<", "[", "{"):
        kind = "HTML" if head == "<" else "JSON"
        raise NotAPageError(f"not a metrics page: the answer is {kind}; is the address that of the metrics?")
    return text, False


def _lines(text: str) -> Iterator[str]:
    """Lines as the format has them: by line feeds alone."""
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield text[at:end].rstrip("\r")
        at = end + 1


class _Reader:
    """Keeps what the lines said."""

    def __init__(self) -> None:
        self.samples: dict[str, list[Sample]] = {}
        self.bad: list[BadLine] = []
        self.bad_lines = 0
        self.conflicts: set[str] = set()
        self.help: dict[str, str] = {}
        self._seen: dict[tuple[str, frozenset[tuple[str, str]]], float | None] = {}

    def line(self, number: int, line: str) -> None:
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            if told := _HELP.fullmatch(stripped):
                self.help[told[1]] = told[2]
            return
        found = read_line(stripped)
        if found is None:
            self.bad_lines += 1
            if len(self.bad) < MOST_REMEMBERED:
                self.bad.append(BadLine(number, line[:120]))
            return
        self._add(*found)

    def _add(self, series: Series, value: float | None) -> None:
        key = (series.name, series.key)
        if key not in self._seen:
            self._seen[key] = value
            self.samples.setdefault(series.name, []).append(Sample(series.labels, value))
        elif self._seen[key] != value:
            self.conflicts.add(series.name)


def read_line(line: str) -> tuple[Series, float | None] | None:
    """Series and value of one line without comment; None when it is not of the format."""
    head, _, text = line.rpartition(" ")
    series = _whole(head)
    if series is None:
        found = _series(line)
        rest = _REST.fullmatch(line, found[1]) if found else None
        if found is None or rest is None:
            return None
        series, text = found[0], rest[1]
    if _NUMBER.fullmatch(text):
        value = float(text)
        return series, value if math.isfinite(value) else None
    return (series, None) if _NO_NUMBER.fullmatch(text) else None


@lru_cache(maxsize=MOST_KEPT)
def _whole(text: str) -> Series | None:
    """The series that a text names and nothing else; kept, because every page names the same ones."""
    found = _series(text)
    return found[0] if found and not text[found[1] :].strip() else None


def _series(line: str) -> tuple[Series, int] | None:
    """The series that a line begins with, and where that ends."""
    named = _NAME.match(line)
    if named is None:
        return None
    at, labels = named.end(), {}
    if line[at : at + 1] == "{":
        found = _labels(line, at + 1)
        if found is None:
            return None
        labels, at = found
    elif line[at : at + 1] not in ("", " ", "\t"):
        return None
    return Series(named[0], labels, frozenset(labels.items())), at


def _labels(line: str, at: int) -> tuple[dict[str, str], int] | None:
    """The labels that begin after a brace, and where the line goes on after the closing one."""
    labels: dict[str, str] = {}
    while True:
        label = _LABEL.match(line, at)
        if label is None:
            break
        name, value = label[1], label[2]
        labels[name] = _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[0]), value) if "\\" in value else value
        at = label.end()
    while line[at : at + 1] in (" ", "\t"):
        at += 1
    return (labels, at + 1) if line[at : at + 1] == "}" else None
