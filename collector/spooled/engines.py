"""Who tells what of an engine: a spool its steps, a scraper its counters, a proxy its requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .usage_queue import UsageQueue


class Engines:
    """What the collector knows of its engines, so that nothing of them is counted twice.

    An engine is exact while a spool tells its steps; scraped ones, known from the configuration, have a queue. A GPU is
    told by the source that told it first.
    """

    def __init__(self, scraped: Iterable[str] = ()) -> None:
        self.queues: Mapping[str, UsageQueue] = {engine_id: UsageQueue(engine_id) for engine_id in scraped}
        self._exact: dict[str, set[str]] = {}
        self._gpus: dict[str, str] = {}

    def scrape(self, engine_ids: Iterable[str]) -> None:
        """From now on these are the scraped ones; queues of those that stay are kept."""
        self.queues = {engine_id: self.queues.get(engine_id) or UsageQueue(engine_id) for engine_id in engine_ids}

    def tells_steps(self, engine_id: str, writer: str) -> None:
        """A spool tells the steps of an engine."""
        self._exact.setdefault(engine_id, set()).add(writer)

    def is_gone(self, writer: str) -> None:
        """A spool is at its end."""
        for writers in self._exact.values():
            writers.discard(writer)

    def is_exact(self, engine_id: str) -> bool:
        """Whether a spool tells the steps of an engine."""
        return bool(self._exact.get(engine_id))

    def tells_gpu(self, gpu_uuid: str, source: str) -> bool:
        """Whether it is this source that tells a device."""
        return self._gpus.setdefault(gpu_uuid, source) == source

    def leaves_gpus(self, source: str) -> None:
        """A source of readings is at its end: others may tell its devices."""
        self._gpus = {gpu_uuid: teller for gpu_uuid, teller in self._gpus.items() if teller != source}

    def queue(self, engine_id: str) -> UsageQueue | None:
        """Where usage of an engine is wanted; None: nowhere."""
        return None if self.is_exact(engine_id) else self.queues.get(engine_id)
