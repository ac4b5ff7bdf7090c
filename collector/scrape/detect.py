"""Detection: which engine wrote a page."""

from __future__ import annotations

from collections import Counter

from .mapping import Engine, engines
from .page import Page

MOST_NAMED = 12
_PROCESS = ("python_", "process_", "http_", "go_", "promhttp_", "up", "scrape_", "target_")


def detect(page: Page) -> Engine | None:
    """The engine whose families are on the page; None when there is none that is known.

    A worker's page may carry two engines' families: what runs the model goes before what routes requests to it.
    """
    for engine in sorted(engines().values(), key=lambda engine: engine.order):
        if engine.needs and not any(name in page for name in engine.needs):
            continue
        if any(name.startswith(engine.prefixes) for name in page.samples):
            return engine
    return next((engine for engine in engines().values() if engine.bare and _is_bare(engine, page)), None)


def bare_name(family: str, engine: Engine) -> str:
    """A family without the engine's prefix."""
    return next((family.removeprefix(prefix) for prefix in engine.prefixes if family.startswith(prefix)), family)


def why_unknown(page: Page) -> str:
    """What is on a page that no engine is known by, and what may be the cause."""
    families = Counter(_stem(name) for name in page.samples)
    if not families:
        return "reachable, but the page is empty: is the address that of the metrics, and are they switched on?"
    if all(name.startswith(_PROCESS) for name in families):
        return (
            "reachable, but it tells no model metrics, only those of its process: are they switched off"
            " (vLLM: --disable-log-stats), or is the folder of a multi-process server lost (PROMETHEUS_MULTIPROC_DIR)?"
        )
    named = [name for name in families if not name.startswith(_PROCESS)]
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return f"no engine that Farebox knows: the page has {', '.join(named[:MOST_NAMED])}{more}"


def unknown_families(page: Page, engine: Engine) -> list[str]:
    """Families of the engine that the mapping has no use for, for those who look for news in a release."""
    known = {
        bare_name(family, engine) for expressions in engine.nouns.values() for e in expressions for family in e.families
    }
    stems = {_stem(name) for name in page.samples if name.startswith(engine.prefixes)}
    return sorted(stem for stem in stems if not {bare_name(stem, engine), f"{bare_name(stem, engine)}_total"} & known)


def _is_bare(engine: Engine, page: Page) -> bool:
    """Two families of an engine under their names without a prefix are no coincidence."""
    wanted = {
        bare_name(family, engine)
        for nouns in (engine.counters, engine.histograms)
        for expressions in nouns.values()
        for expression in expressions
        for family in expression.families
    }
    return len(wanted & ({_stem(name) for name in page.samples} | page.samples.keys())) >= 2


def _stem(name: str) -> str:
    """A sample's family: without what histograms and counters put behind it."""
    for ending in ("_bucket", "_sum", "_count", "_created"):
        if name.endswith(ending):
            return name.removesuffix(ending)
    return name
