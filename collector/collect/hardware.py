"""Readings of GPUs as sources of the daemon: this host's own, and those on the page of a DCGM exporter."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ...errors import FareboxError
from ...events import GPU_SAMPLES
from ...storage.errors import StoreFullError
from ..config.sources import PageConfig
from ..dcgm.watch import DcgmWatch
from ..hardware import PERIOD_S, HardwareRecorder, steady_clock
from ..samples import SampleLog
from ..scrape.fetch import Fetcher, HttpFetcher, Target
from ..scrape.page import read_page
from ..scrape.server import METRICS
from ..scrape.spelling import KEYS
from ..spooled.engines import Engines
from .source import Look

if TYPE_CHECKING:
    from ...storage.store import Store


class HardwareSource:
    """The GPUs and the host that the collector runs on."""

    kind = "nvml"
    period_s = PERIOD_S

    def __init__(self, recorder: HardwareRecorder, engines: Engines) -> None:
        self.name = "nvml"
        self._recorder = recorder
        self._engines = engines

    def look(self) -> Look:
        """Look at all GPUs and the host."""
        poll, _ = self._recorder.look()
        for sample in poll.samples:
            self._engines.tells_gpu(sample.gpu_uuid, self.name)
        return Look(poll.state, poll.why, is_told=True)

    def close(self) -> None:
        """Let go of NVML."""
        self._engines.leaves_gpus(self.name)
        self._recorder.close()


def target_of(config: PageConfig) -> Target:
    """The server of a section; InputError where its address is none."""
    return Target(config.url, config.token_env, config.token_file, config.ca, config.timeout, KEYS)


class DcgmSource:
    """The GPUs of one exporter. Those that another source tells are left to it."""

    kind = "dcgm"

    def __init__(self, config: PageConfig, store: Store, engines: Engines, fetcher: Fetcher | None = None) -> None:
        target = target_of(config)
        self.name = f"dcgm:{target.place}"
        self.period_s = config.interval
        self._path = target.path or METRICS
        self._fetcher = fetcher or HttpFetcher(target)
        self._watch = DcgmWatch(config.host or target.host, is_host_given=config.host is not None)
        self._samples = SampleLog(store)
        self._engines = engines
        self._clock = steady_clock()

    def look(self) -> Look:
        """Read the page, and record what it tells; FareboxError where there is none."""
        try:
            page = read_page(self._fetcher.get(self._path).text)
        except FareboxError:
            self._watch.pause()
            raise
        poll = self._watch.see(page, self._clock())
        told = [sample for sample in poll.samples if self._engines.tells_gpu(sample.gpu_uuid, self.name)]
        self._samples.add(GPU_SAMPLES, told)
        with suppress(StoreFullError):
            self._samples.record()
        return Look(poll.state, "; ".join(filter(None, (poll.why, page.trouble))) or None)

    def close(self) -> None:
        """Let go of the exporter."""
        self._engines.leaves_gpus(self.name)
        self._fetcher.close()
