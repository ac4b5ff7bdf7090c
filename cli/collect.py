"""`farebox collect`: any number of engines into one store, without a screen."""

from __future__ import annotations

import signal
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .serving_options import needing_extra

if TYPE_CHECKING:
    from ..collector.collect.daemon import Daemon
    from ..collector.config.collecting import CollectConfig

EPILOG = """\b
Examples
  farebox collect --example > farebox.toml         a file with every key, explained
  farebox collect -c farebox.toml --check          is the file right? Changes nothing
  farebox collect -c farebox.toml                  collect until Ctrl-C or SIGTERM
  farebox collect -c farebox.toml --listen 127.0.0.1:9464      and tell Prometheus
  farebox doctor STORE -c farebox.toml             can every source be read?

\b
Signals
  SIGTERM, SIGINT   record what is there and end with exit code 0
  SIGHUP            read the sources anew; store, listen and alerts need a restart
"""


@click.command(epilog=EPILOG, short_help="Collect from engines, spools and GPUs into a store.")
@click.option("-c", "--config", "path", type=click.Path(path_type=Path, dir_okay=False), help="The file to go by.")
@click.option("--check", is_flag=True, help="Only say whether the file is right.")
@click.option("--listen", metavar="HOST:PORT", help="Tell Prometheus; in place of the file's.")
@click.option("--example", is_flag=True, help="Print a file with every key, explained.")
def collect(path: Path | None, check: bool, listen: str | None, example: bool) -> None:
    """Collect from scraped engines, spools of the vLLM plugin and the proxy, and GPUs into one store.

    A source that fails is tried again, later and later, and stops no other; its outage is unobserved time. Needs
    farebox[serve].
    """
    if example:
        click.echo(
            resources.files("farebox.cli").joinpath("example_collect.toml").read_text(encoding="utf-8"), nl=False
        )
        return
    if path is None:
        raise click.UsageError("give the file to go by: -c FILE (--example prints one)")
    config = load_config(path)
    if check:
        _say(f"{path} is right: {len(config.source)} sources into {config.store}")
        return
    _collect(path, config, listen or config.listen)


def load_config(path: Path) -> CollectConfig:
    """The file at `path`; FareboxError where what reads it is not installed."""
    with needing_extra("farebox collect"):
        from ..collector.config.file import read_config
    return read_config(path)


def _collect(path: Path, config: CollectConfig, listen: str | None) -> None:
    from ..collector.collect.daemon import Daemon
    from ..collector.collect.duties import duties
    from ..storage.store import create_store

    with create_store(config.store) as store:
        daemon = Daemon(store, _say)
        with duties(config, store, daemon, listen, _say):
            _obey_signals(daemon)
            _say(f"collecting into {store.path}; Ctrl-C ends it")
            daemon.run(config.source, lambda: load_config(path).source)


def _obey_signals(daemon: Daemon) -> None:
    def end(*_: object) -> None:
        daemon.stop()

    def reload(*_: object) -> None:
        daemon.reload()

    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, end)
    signal.signal(signal.SIGHUP, reload)


def _say(text: str) -> None:
    click.echo(text, err=True)
    sys.stderr.flush()
