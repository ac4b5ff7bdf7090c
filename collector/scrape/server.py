"""A server that is scraped: what it is asked for, and what it is found to be."""

from __future__ import annotations

from ...errors import FareboxError
from .detect import detect, why_unknown
from .fetch import Answer, Fetcher, FetchError, Target
from .hints import Hints
from .iterations import Iterations
from .llamacpp import Router, Slots, is_router
from .mapping import engines
from .page import NotAPageError, Page, read_json, read_page
from .reading import Reader, Reading

METRICS = "/metrics"
BESIDE = "/prometheus/metrics"
"""Where TensorRT-LLM has its page when /metrics is not one."""


class NoEnginePageError(NotAPageError):
    """The page of an exporter that tells of GPUs."""


class Server:
    """Asks one server for its page, and reads it as the engine's that wrote it."""

    def __init__(self, target: Target, fetcher: Fetcher) -> None:
        self._target = target
        self._fetcher = fetcher
        self._path = target.path or METRICS
        self._reader: Reader | None = None
        self._slots: Slots | None = None
        self._router: Router | None = None
        self._iterations: Iterations | None = None
        self._hints = Hints()

    @property
    def kind(self) -> str:
        """The engine's kind; `scrape` until it is known."""
        if self._iterations is not None:
            return self._iterations.engine.kind
        return self._reader.engine.kind if self._reader else "scrape"

    @property
    def may_sleep(self) -> bool:
        """Whether the engine unloads its model when nobody asks, and reading its page keeps it awake."""
        return self.kind == "llamacpp" or self._router is not None

    def read(self) -> tuple[Reading, float]:
        """What the page says, and how long the server took; FareboxError in plain words where that is nothing."""
        if self._router is not None:
            page, took_s = self._router.page()
            return self._of(page), took_s
        answer = self._ask()
        if answer is None:
            return self.read()
        if answer.text.lstrip()[:1] == "[":
            return self._of_iterations(answer)
        return self._of(read_page(answer.text)), answer.took_s

    def _ask(self) -> Answer | None:
        """The page; None when the server turns out to be a router, which is asked in another way."""
        try:
            return self._fetcher.get(self._path)
        except FetchError as error:
            if self._target.path is not None or self._reader is not None:
                raise
            if error.status == 400 and is_router(self._fetcher):
                self._router = Router(self._fetcher)
                return None
            if error.status == 404:
                answer = self._beside()
                if answer is not None:
                    return answer
            raise

    def _beside(self) -> Answer | None:
        try:
            answer = self._fetcher.get(BESIDE)
        except FetchError:
            return None
        self._path = BESIDE
        return answer

    def _of_iterations(self, answer: Answer) -> tuple[Reading, float]:
        """What iterations tell. Where none ever is, though the page beside them tells of work, that page is read."""
        iterations = self._iterations = self._iterations or Iterations(engines()["trtllm"])
        reading = iterations.read(read_json(answer.text))
        if not iterations.has_any and self._has_worked_beside():
            self._path, self._iterations = BESIDE, None
            return self.read()
        return reading, answer.took_s

    def _has_worked_beside(self) -> bool:
        try:
            page = read_page(self._fetcher.get(BESIDE).text)
        except FareboxError:
            return False
        engine = engines()["trtllm"]
        return detect(page) is engine and any(Reader(engine).read(page).counters.values())

    def _of(self, page: Page) -> Reading:
        reader = self._reader
        if reader is None or not any(name.startswith(reader.engine.prefixes) for name in page.samples):
            reader = self._recognise(page)
        reading = reader.read(page)
        reading.hints = self._hints.see(reading, page)
        if reader.engine.kind == "llamacpp" and self._router is None:
            self._slots = self._slots or Slots(self._fetcher)
            self._slots.add_to(reading)
        return reading

    def _recognise(self, page: Page) -> Reader:
        engine = detect(page)
        if engine is None:
            raise NotAPageError(f"{self._target.place}: {why_unknown(page)}")
        if not engine.is_engine:
            raise NoEnginePageError(f"{self._target.place} is a page of {engine.name}: it tells of GPUs, not of work")
        if self._reader is None or engine is not self._reader.engine:
            self._reader = Reader(engine)
        return self._reader
