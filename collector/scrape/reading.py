"""A reading: one page as numbers under Farebox's names, each with a value or the reason why it has none."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from .detect import bare_name
from .mapping import COUNTERS, FACTS, GAUGES, HISTOGRAMS, Engine, Expression, Term
from .page import CONFLICT, Page, Sample

START = "process_start_time_seconds"
NOT_HERE = "not on this page"
MOST = 2**53
"""Beyond it floats do not count one by one."""
MOST_RATIO = 1.5
"""A KV cache that is fuller than that is not believed; one a little above 1 is kept as it was told."""
_PRINTED = re.compile(r"\{'[^']*': '([^']*)'\}")

Part = tuple[str, ...]
"""The values of the labels that tell data-parallel engines apart."""
Cumulative = dict[float, float]
"""Upper bound in s → values up to it since the start."""


@dataclass
class Reading:
    """What a page says. Counters and histograms count since the engine's start."""

    engine: Engine
    gauges: dict[str, float] = field(default_factory=dict[str, float])
    kv_ratios: tuple[float, ...] = ()
    """One per data-parallel engine, in the order of their labels."""
    counters: dict[str, float] = field(default_factory=dict[str, float])
    histograms: dict[str, Cumulative] = field(default_factory=dict[str, Cumulative])
    by_tenant: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    """Counter → tenant → value, for engines that know tenants."""
    facts: dict[str, int] = field(default_factory=dict[str, int])
    missing: dict[str, str] = field(default_factory=dict[str, str])
    model: str | None = None
    start_s: float | None = None
    warnings: list[str] = field(default_factory=list[str])
    hints: list[str] = field(default_factory=list[str])
    """What figures must not be taken for; nothing is wrong."""
    lost_lines: int = 0
    """Lines that could not be read. Without any, what is absent really is."""
    unclear: list[str] = field(default_factory=list[str])
    """Counters that the page has without a value to be believed: they are not 0."""

    @property
    def kv_mean(self) -> float | None:
        """The part of all engines' KV caches that is in use; None where the page does not tell it."""
        return sum(self.kv_ratios) / len(self.kv_ratios) if self.kv_ratios else None


class Reader:
    """Reads the pages of one engine; it remembers worker processes, whose series outlive them."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._pids = _Pids()

    def read(self, page: Page) -> Reading:
        """A page's numbers; what it lacks is named in `missing`."""
        scan = _Scan(page, self.engine, self._pids)
        reading = Reading(self.engine, lost_lines=page.bad_lines + page.is_cut)
        for noun in GAUGES:
            self._gauge(scan, reading, noun)
        for noun in COUNTERS:
            self._counter(scan, reading, noun)
        for noun in HISTOGRAMS:
            self._histogram(scan, reading, noun)
        for noun in FACTS:
            found = scan.sum(self.engine.facts.get(noun, ()))
            if isinstance(found, float) and found >= 1:
                reading.facts[noun] = round(found)
        reading.model = scan.model()
        reading.start_s = scan.start_s()
        reading.warnings += scan.warnings
        if page.trouble:
            reading.warnings.append(page.trouble)
        return reading

    def _gauge(self, scan: _Scan, reading: Reading, noun: str) -> None:
        expressions = self.engine.gauges.get(noun, ())
        parts = scan.parts(expressions, each_model=noun == "kv_ratio")
        if isinstance(parts, str):
            reading.missing[noun] = self._why(noun, parts)
        elif noun == "kv_ratio" and max(parts.values()) > MOST_RATIO:
            reading.missing[noun] = f"the page says {max(parts.values()):g}, which is no part of a cache"
        elif noun == "kv_ratio":
            reading.kv_ratios = tuple(parts.values())
            reading.gauges[noun] = max(parts.values())
        else:
            reading.gauges[noun] = sum(parts.values())

    def _counter(self, scan: _Scan, reading: Reading, noun: str) -> None:
        expressions = self.engine.counters.get(noun, ())
        parts = scan.parts(expressions)
        if isinstance(parts, str):
            reading.missing[noun] = self._why(noun, parts)
            reading.unclear += [noun] if parts != NOT_HERE else []
            return
        total = sum(parts.values())
        reading.counters[noun] = total / len(parts) if noun.endswith("busy_s") else total
        if self.engine.tenants and noun in ("prompt_tokens", "cached_tokens", "output_tokens"):
            reading.by_tenant[noun] = scan.tenants(expressions)

    def _histogram(self, scan: _Scan, reading: Reading, noun: str) -> None:
        found = scan.histogram(self.engine.histograms.get(noun, ()))
        if isinstance(found, str):
            reading.missing[noun] = self._why(noun, found)
        else:
            reading.histograms[noun] = found

    def _why(self, noun: str, why: str) -> str:
        return self.engine.absent.get(noun, why) if why == NOT_HERE else why


class _Pids:
    """Which of several worker processes live: a dead one's series stay as they were."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], float | None] = {}
        self._moved: dict[str, set[str]] = {}

    def living(self, family: str, samples: list[Sample]) -> list[Sample] | None:
        """The samples of the process that lives; None while that is not known."""
        pids = {sample.labels["pid"] for sample in samples if "pid" in sample.labels}
        moved = self._moved.setdefault(family, set())
        for sample in samples:
            pid = sample.labels.get("pid", "")
            before = self._last.get((family, pid), sample.value)
            if before != sample.value:
                moved.add(pid)
            self._last[family, pid] = sample.value
        if len(pids) < 2:
            return samples
        alive = moved & pids
        return [s for s in samples if s.labels.get("pid") in alive] if len(alive) == 1 else None


class _Scan:
    """Looks up expressions on one page."""

    def __init__(self, page: Page, engine: Engine, pids: _Pids) -> None:
        self._page = page
        self._engine = engine
        self._pids = pids
        self._names = _spellings(page, engine)
        self.warnings: list[str] = []

    def parts(self, expressions: Iterable[Expression], *, each_model: bool = False) -> dict[Part, float] | str:
        """The value of the first expression on the page, for each data-parallel engine; or why there is none.

        With `each_model` models are told apart too: parts of caches do not add up.
        """
        labels = (*self._engine.parts, *(self._engine.models if each_model else ()))
        why = NOT_HERE
        for expression in expressions:
            found = self._evaluate(expression, labels)
            if not isinstance(found, str):
                return found
            why = why if found == NOT_HERE else found
        return why

    def sum(self, expressions: Iterable[Expression]) -> float | str:
        """The sum of the parts."""
        found = self.parts(expressions)
        return found if isinstance(found, str) else sum(found.values())

    def tenants(self, expressions: Iterable[Expression]) -> dict[str, float]:
        """The first expression's value for each tenant that labels name."""
        for expression in expressions:
            if all(self._has(family) for family in expression.families):
                totals: defaultdict[str, float] = defaultdict(float)
                for term in expression.terms:
                    for sample in self._samples(term):
                        tenant = _first(sample.labels, self._engine.tenants)
                        if tenant and sample.value is not None:
                            totals[tenant] += sample.value * term.factor
                return dict(totals)
        return {}

    def histogram(self, expressions: Iterable[Expression]) -> Cumulative | str:
        """The first histogram on the page, summed over all series."""
        for expression in expressions:
            term = expression.terms[0]
            buckets: defaultdict[float, float] = defaultdict(float)
            for name in (f"{term.family}_bucket", term.family):
                for labels, value in self._samples(term._replace(family=name)):
                    bound = _bound(labels.get("le"))
                    if bound is not None and value is not None:
                        buckets[bound * term.factor] += value
                if buckets:
                    return dict(buckets)
        return NOT_HERE

    def model(self) -> str | None:
        """What the page calls the model; several are named together."""
        if not self._engine.models:
            return None
        samples = (sample for name in self._names.values() for sample in self._page.get(name))
        told = {_first(sample.labels, self._engine.models) for sample in samples}
        return ", ".join(sorted(model for model in told if model)[:4]) or None

    def start_s(self) -> float | None:
        """When the engine's process started, in s since 1970: as it says, or as its oldest counter does."""
        told = [s.value for s in self._page.get(START) if s.value]
        if told:
            return max(told)
        created = (
            sample.value
            for name in self._page.samples
            if name.endswith("_created") and name.startswith(self._engine.prefixes)
            for sample in self._page.get(name)
        )
        return min((value for value in created if value), default=None)

    def _has(self, family: str) -> bool:
        return self._names.get(bare_name(family, self._engine), family) in self._page

    def _evaluate(self, expression: Expression, labels: tuple[str, ...]) -> dict[Part, float] | str:
        if not all(self._has(family) for family in expression.families):
            return NOT_HERE
        above = self._total(expression.terms, labels)
        if isinstance(above, str) or not expression.over:
            return above
        below = self._total(expression.over, labels)
        if isinstance(below, str):
            return below
        if any(below.get(key, 0) <= 0 for key in above):
            return "its whole is 0"
        return {key: value / below[key] for key, value in above.items()}

    def _total(self, terms: Iterable[Term], labels: tuple[str, ...]) -> dict[Part, float] | str:
        totals: defaultdict[Part, float] = defaultdict(float)
        for term in terms:
            found = self._part_values(term, labels)
            if isinstance(found, str):
                return found
            for key, value in found:
                totals[key] += value
        return dict(sorted(totals.items()))

    def _part_values(self, term: Term, labels: tuple[str, ...]) -> list[tuple[Part, float]] | str:
        name = self._names.get(bare_name(term.family, self._engine), term.family)
        if name in self._page.conflicts:
            return f"{name} {CONFLICT}"
        samples = self._pids.living(name, list(self._samples(term)))
        if samples is None:
            why = f"{name} has series of several processes, and which of them lives is not known yet"
            self.warnings.append(why)
            return why
        factor = self._factor(term, name)
        if isinstance(factor, str):
            return factor
        values = [(_key(s.labels, labels), _value(s, term, factor)) for s in self._lowest(samples)]
        if not values:
            return NOT_HERE
        known = [(key, value) for key, value in values if value is not None]
        return known if len(known) == len(values) else f"{name} is no number"

    def _factor(self, term: Term, name: str) -> float | str:
        """By what a family's values are multiplied; why that is not known, where it counts blocks of unknown size."""
        said = self._page.help.get(name) or self._page.help.get(name.removesuffix("_total"), "")
        if term.family not in self._engine.in_blocks or "block" not in said:
            return term.factor
        size = self.sum(self._engine.facts.get("block_tokens", ()))
        return f"{name} counts blocks, whose size is not on the page" if isinstance(size, str) else term.factor * size

    def _samples(self, term: Term) -> Iterator[Sample]:
        name = self._names.get(bare_name(term.family, self._engine), term.family)
        for sample in self._page.get(name):
            if all(_plain(sample.labels.get(label, "")) in values for label, values in term.where.items()):
                yield sample if _can_be(sample.value) else sample._replace(value=None)

    def _lowest(self, samples: list[Sample]) -> list[Sample]:
        """Of workers that all tell the same, the lowest of each data-parallel engine."""
        if not self._engine.ranks or not any(rank in s.labels for s in samples for rank in self._engine.ranks):
            return samples
        lowest: dict[Part, tuple[int, ...]] = {}
        placed = [(_key(s.labels, self._engine.parts), _ranks(s.labels, self._engine.ranks), s) for s in samples]
        for part, rank, _ in placed:
            lowest[part] = min(lowest.get(part, rank), rank)
        return [sample for part, rank, sample in placed if rank == lowest[part]]


def _spellings(page: Page, engine: Engine) -> dict[str, str]:
    """Bare name → the name on the page: one engine, one spelling, the first of its prefixes that is there."""
    names: dict[str, str] = {}
    for prefix in engine.prefixes:
        for name in page.samples:
            if name.startswith(prefix):
                names.setdefault(name.removeprefix(prefix), name)
    if engine.bare and not names:
        names = {name: name for name in page.samples}
    return names


def _can_be(value: float | None) -> bool:
    """Whether anything that is read can have the value: nothing is negative, nor so large that it no longer counts."""
    return value is None or 0 <= value <= MOST


def _value(sample: Sample, term: Term, factor: float) -> float | None:
    if term.label is not None:
        text = sample.labels.get(term.label, "")
        value = float(text) if text.isdecimal() else None
        return value if _can_be(value) else None
    return None if sample.value is None else sample.value * factor


def _key(labels: Mapping[str, str], names: Iterable[str]) -> tuple[str, ...]:
    return tuple(labels.get(name, "") for name in names)


def _ranks(labels: Mapping[str, str], names: Iterable[str]) -> tuple[int, ...]:
    return tuple(int(labels[name]) if labels.get(name, "").isdecimal() else 0 for name in names)


def _first(labels: Mapping[str, str], names: Iterable[str]) -> str | None:
    for name in names:
        if (value := labels.get(name)) not in (None, "", "None"):
            return value
    return None


def _plain(value: str) -> str:
    """A label's value; of a printed dict of one entry, that entry's."""
    found = _PRINTED.fullmatch(value)
    return found[1] if found else value


def _bound(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
