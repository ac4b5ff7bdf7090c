"""The mapping: which families of an engine's page mean what. The facts are in `mapping.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

GAUGES = ("running", "waiting", "kv_ratio")
COUNTERS = (
    "prompt_tokens", "computed_tokens", "cached_tokens", "output_tokens", "requests", "preemptions", "busy_s",
    "prefill_busy_s", "decode_busy_s", "cache_queries", "drafts", "draft_tokens", "accepted_tokens",
)  # fmt: skip
HISTOGRAMS = ("ttft", "itl", "e2e", "queue")
FACTS = ("seats", "kv_blocks", "block_tokens")
_TERM = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{([^}]*)\}(\w+)?)?(?:\s*\*\s*([\d.]+))?")


class Term(NamedTuple):
    """The series of one family that meet conditions (label → the values it may have), times a factor."""

    family: str
    where: Mapping[str, frozenset[str]]
    label: str | None
    """The label whose value counts, in place of the sample's; None: the sample's."""
    factor: float


class Expression(NamedTuple):
    """A sum of terms, over another sum where there is one."""

    terms: tuple[Term, ...]
    over: tuple[Term, ...]

    @property
    def families(self) -> list[str]:
        """Everything that has to be on the page."""
        return [term.family for term in (*self.terms, *self.over)]


Nouns = Mapping[str, tuple[Expression, ...]]


@dataclass(frozen=True)
class Engine:
    """How to read one engine's pages."""

    kind: str
    name: str
    source: str
    prefixes: tuple[str, ...]
    needs: tuple[str, ...]
    order: int
    is_engine: bool
    """Not so: a page of GPUs, without work."""
    has_gpus: bool
    """Not so: a gateway in front of engines."""
    bare: bool
    """Older versions wrote the families without any prefix."""
    parts: tuple[str, ...]
    ranks: tuple[str, ...]
    models: tuple[str, ...]
    tenants: tuple[str, ...]
    in_blocks: frozenset[str]
    """Families of tokens that older versions count in KV blocks."""
    gauges: Nouns
    counters: Nouns
    histograms: Nouns
    facts: Nouns
    absent: Mapping[str, str]

    @property
    def nouns(self) -> dict[str, tuple[Expression, ...]]:
        """Everything that this engine has a name for."""
        return {**self.gauges, **self.counters, **self.histograms, **self.facts}


@cache
def engines() -> dict[str, Engine]:
    """All engines by kind."""
    tables = tomllib.loads(files("farebox.collector.scrape").joinpath("mapping.toml").read_text("utf-8"))
    return {kind: _engine(kind, tables[table["like"]] | table if "like" in table else table)
            for kind, table in tables.items()}  # fmt: skip


def _engine(kind: str, table: dict[str, Any]) -> Engine:
    def nouns(name: str) -> Nouns:
        return {noun: tuple(map(parse, texts)) for noun, texts in table.get(name, {}).items()}

    def words(name: str) -> tuple[str, ...]:
        return tuple(table.get(name, ()))

    return Engine(
        kind=kind,
        name=table["name"],
        source=table["source"],
        prefixes=words("prefixes"),
        needs=words("needs"),
        order=table["order"],
        is_engine=table.get("is_engine", True),
        has_gpus=table.get("has_gpus", True),
        bare=table.get("bare", False),
        parts=words("parts"),
        ranks=words("ranks"),
        models=words("models"),
        tenants=words("tenants"),
        in_blocks=frozenset(words("in_blocks")),
        gauges=nouns("gauges"),
        counters=nouns("counters"),
        histograms=nouns("histograms"),
        facts=nouns("facts"),
        absent=table.get("absent", {}),
    )


def parse(text: str) -> Expression:
    """Read an expression of the mapping; ValueError when it is none."""
    above, _, below = text.partition(" / ")
    return Expression(_terms(above), _terms(below) if below else ())


def _terms(text: str) -> tuple[Term, ...]:
    return tuple(_term(part.strip()) for part in text.split(" + "))


def _term(text: str) -> Term:
    found = _TERM.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no term of the mapping")
    family, conditions, label, factor = found.groups()
    where = dict(condition.split("=", 1) for condition in (conditions or "").split(",") if condition)
    values = {name: frozenset(value.split("|")) for name, value in where.items()}
    return Term(family, values, label, float(factor or 1))
