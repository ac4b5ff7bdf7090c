"""Pages told one after the other, and what a source makes of them."""

from __future__ import annotations

from pathlib import Path

from farebox.collector.scrape.fetch import Answer, FetchError, Target
from farebox.collector.scrape.setup import Setup
from farebox.collector.scrape.source import Look, ScrapeSource

CASES = Path(__file__).parents[1] / "cases"
S = 1_000_000_000
START = 1_770_000_000 * S
H100 = Setup(gpu="h100", gpus=1, model="llama-3-8b")


def case(name: str) -> str:
    return (CASES / name).read_text("utf-8")


class Pages:
    """A fetcher that answers with one page after the other; an exception is raised.

    Unless it is to answer `anything`, there is nothing but the page.
    """

    def __init__(self, *pages: str | Exception, anything: bool = False) -> None:
        self._pages = iter(pages)
        self._anything = anything
        self.asked: list[str] = []

    def get(self, path: str) -> Answer:
        self.asked.append(path)
        if path != "/metrics" and not self._anything:
            raise FetchError("no such page", 404)
        page = next(self._pages)
        if isinstance(page, Exception):
            raise page
        return Answer(page, 0.01)

    def close(self) -> None:
        pass


def source_of(*pages: str | Exception, setup: Setup = H100, period_s: float = 10, **options) -> ScrapeSource:
    return ScrapeSource(Target("http://h:8000"), setup, fetcher=Pages(*pages), period_s=period_s, **options)


def looks_at(*pages: str | Exception, every_s: float = 10, setup: Setup = H100, **options) -> list[Look]:
    """One look per page, `every_s` apart on both clocks."""
    source = source_of(*pages, setup=setup, period_s=every_s, **options)
    return [source.poll(START + round(i * every_s * S), round(i * every_s * S)) for i in range(len(pages))]


def page_of(**values: float) -> str:
    """A page of vLLM with these families."""
    return "".join(f'vllm:{name}{{engine="0",model_name="m"}} {value}\n' for name, value in values.items())
