"""`farebox gpu`: the GPUs of this host, now or recorded once a second."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import FareboxError
from .options import json_option

if TYPE_CHECKING:
    from ..collector.nvml.last import LastSeen
    from ..collector.nvml.watch import Poll
    from ..events import GpuSample, SourceState

EPILOG = """\b
Examples
  farebox gpu                  every GPU and MIG slice now; n/a where the driver does not tell, and why
  farebox gpu --json           the same for programs
  farebox gpu --watch STORE    record GPUs and host into a store once a second; Ctrl-C ends it
  farebox gpu --last STORE     the newest readings in a store, with since when a card is lost or silent
"""
_STORE = click.Path(path_type=Path)


@click.command(epilog=EPILOG, short_help="Show this host's GPUs, or record them.")
@click.option("--watch", type=_STORE, metavar="STORE", help="Record into a store once a second, until interrupted.")
@click.option("--last", type=_STORE, metavar="STORE", help="Show the newest readings that a store has.")
@json_option
def gpu(watch: Path | None, last: Path | None, as_json: bool) -> None:
    """Show what NVIDIA's driver tells of this host's GPUs.

    Busy time is the part of the time in which some kernel ran: at 100 % a GPU may still be almost empty; power beside
    its limit tells more. Memory is what programs reserved, engines most of the card when they start: it says nothing of
    how much of it is used. Ends with exit code 1 when NVML cannot be used.
    """
    if watch is not None and (last is not None or as_json):
        raise click.UsageError("--watch records: give it alone")
    if watch is not None:
        _record(watch)
    elif last is not None:
        _show_last(last, as_json)
    else:
        _show_now(as_json)


def _show_now(as_json: bool) -> None:
    from ..collector.host import host_memory
    from ..collector.nvml.watch import GpuWatch
    from .gpu_rows import print_gpus

    watch = GpuWatch(host_memory=host_memory)
    poll = watch.poll(time.time_ns())
    driver = watch.driver() if poll.state != "down" else None
    watch.close()
    if as_json:
        click.echo(json.dumps(_figures(poll, driver), indent=2, ensure_ascii=False))
    elif poll.state != "down":
        print_gpus(poll.samples)
    if poll.state == "down":
        raise FareboxError(f"GPUs cannot be read: {poll.why}")
    if poll.why and not as_json:
        click.echo(poll.why, err=True)


def _figures(poll: Poll, driver: str | None) -> dict[str, object]:
    return {
        "state": poll.state,
        "why": poll.why,
        "driver": driver,
        "gpus": [_sample_figures(sample) for sample in poll.samples],
    }


def _sample_figures(sample: GpuSample) -> dict[str, object]:
    return sample._asdict() | {"missing": json.loads(sample.missing or "{}")}


def _seen_figures(one: LastSeen) -> dict[str, object]:
    good = None if one.good is None else _sample_figures(one.good)
    return {"state": one.state, "since_ns": one.since_ns, "newest": _sample_figures(one.newest), "good": good}


def _show_last(path: Path, as_json: bool) -> None:
    from ..collector.nvml.last import last_seen
    from ..storage.live import LiveReader
    from .gpu_rows import print_last

    with LiveReader(path) as reader:
        found = last_seen(reader, time.time_ns())
    if as_json:
        click.echo(json.dumps([_seen_figures(one) for one in found], indent=2, ensure_ascii=False))
    else:
        print_last(found)


def _record(path: Path) -> None:
    from ..collector.hardware import HardwareRecorder
    from ..storage.store import create_store

    stop = threading.Event()

    def end(*_: object) -> None:
        stop.set()

    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, end)
    with create_store(path) as store:
        recorder = HardwareRecorder(store)
        click.echo(f"recording GPUs and host into {path} once a second; Ctrl-C ends it", err=True)
        try:
            recorder.run(stop, _tell)
        finally:
            recorder.close()


def _tell(news: SourceState) -> None:
    click.echo(": ".join(filter(None, (news.source, news.state, news.why))), err=True)
