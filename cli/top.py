"""`farebox top`: the live screen on a store, or on an engine's metrics page."""

from __future__ import annotations

import os
import sys
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError
from .options import PRICE
from .screens import Shown, screen_options, show_screens
from .terminal import is_interactive

if TYPE_CHECKING:
    from .scraping import Scraping

EPILOG = """\b
Examples
  farebox top farebox-runs/3f2a…     watch a store, while it is written or afterwards
  farebox top STORE --page bill      open with another page: live, batch, tenants, gpu, history, bill, alerts
  farebox top STORE --once           one plain snapshot, for scripts and logs
  farebox top STORE --once --json    the same for programs
  farebox top STORE --web            the same screens in a browser, at http://127.0.0.1:8642
  farebox top http://127.0.0.1:8000 --gpu h100 --rate 4.29       watch an engine by its metrics page
  farebox top https://llm.example --token-env LLM_KEY --store S  keep what is seen: farebox report S
"""
PERIOD_S = 5.0
_ENGINE = {
    "--store": "place", "--gpu": "gpu", "--gpus": "gpus", "--model": "model", "--weights": "weights",
    "--max-num-seqs": "max_num_seqs", "--engine-id": "engine_id", "--rate": "rate", "--interval": "interval",
    "--token-env": "token_env", "--token-file": "token_file", "--ca-file": "ca_file",
}  # fmt: skip


@click.command(epilog=EPILOG, short_help="Watch a store or an engine: who rides, what is idle, what it costs.")
@click.argument("source", metavar="STORE|URL")
@click.option("--once", is_flag=True, help="Print one plain snapshot and leave.")
@click.option("--json", "as_json", is_flag=True, help="With --once: print it as JSON.")
@click.option("--web", is_flag=True, help="Show the screens in a browser of this machine, until Ctrl+C.")
@click.option("--port", type=click.IntRange(1, 65535), default=8642, show_default=True, help="With --web: port.")
@screen_options
@click.option("--store", "place", type=click.Path(path_type=Path), help="URL: folder to record into.  [default: none]")
@click.option("--gpu", help="URL: GPU type.  [default: this machine's, if the engine runs here]")
@click.option("--gpus", type=click.IntRange(1, 4096), help="URL: GPUs of the engine.  [default: 1]")
@click.option("--model", help="URL: model, as farebox spells it.  [default: the page's]")
@click.option("--weights", type=click.Choice(["bf16", "fp8", "int8", "int4"]), help="URL: weight format.")
@click.option("--max-num-seqs", type=click.IntRange(1, 2**31), help="URL: seats; most pages do not tell them.")
@click.option("--engine-id", help="URL: name of the engine.  [default: HOST:PORT]")
@click.option("--rate", type=PRICE, help="URL: price of a GPU-hour.")
@click.option("--interval", type=click.FloatRange(1, 300), help="URL: seconds between two reads.  [default: 5]")
@click.option("--token-env", metavar="NAME", help="URL: variable that holds the bearer token.")
@click.option("--token-file", type=click.Path(path_type=Path), help="URL: file that holds the bearer token.")
@click.option("--ca-file", type=click.Path(path_type=Path), help="URL: certificates to trust.")
def top(
    source: str, once: bool, as_json: bool, web: bool, port: int, ascii_only: bool, no_mouse: bool, page: str | None,
    place: Path | None, gpu: str | None, gpus: int | None,
    model: str | None, weights: str | None, max_num_seqs: int | None, engine_id: str | None, rate: Decimal | None,
    interval: float | None, token_env: str | None, token_file: Path | None, ca_file: Path | None,
) -> None:  # fmt: skip
    """Watch who rides the GPU, what is idle and what it costs.

    A store is only read: the screen can be started, stopped and started twice while another process records. A URL
    (http://HOST:PORT) is an engine whose metrics page is read every 5 s: vLLM, SGLang, TGI, llama.cpp, TensorRT-LLM,
    Triton, Dynamo, LMDeploy, Ray Serve LLM, LiteLLM or farebox serve; what a page does not tell is n/a. Without a
    terminal one plain snapshot is printed.
    """
    plain = once or as_json or not (is_interactive() or _is_in_browser())
    shown = Shown(ascii_only, no_mouse, page)
    if not source.startswith(("http://", "https://")):
        _refuse_engine_options()
        if web:
            from .web import web_server

            web_server(Path(source), shown, port).serve()
            return
        _show_store(Path(source), shown, plain=plain, as_json=as_json)
        return
    if web:
        raise InputError("--web shows a store: record the engine with --store, and give that store")
    from ..collector.scrape.fetch import Target
    from ..collector.scrape.setup import Setup
    from .scraping import Scraping

    target = Target(source, token_env, token_file, ca_file)
    setup = Setup(engine_id, None, gpu, gpus, (), model, weights or "bf16", max_num_seqs)
    _show_engine(Scraping(target, setup, interval or PERIOD_S, rate), place, shown, plain=plain, as_json=as_json)


def _show_store(store: Path, shown: Shown, *, plain: bool, as_json: bool) -> None:
    if plain:
        print_snapshot(store, as_json=as_json, ascii_only=shown.ascii_only)
        return
    sys.exit(show_screens(store, shown))


def _show_engine(scraping: Scraping, place: Path | None, shown: Shown, *, plain: bool, as_json: bool) -> None:
    from dataclasses import replace

    from ..collector.scrape.here import with_local_gpus
    from .scraping import show_once, watch

    scraping = replace(scraping, setup=with_local_gpus(scraping.setup, scraping.target))
    look = scraping.check()
    if look.why:
        click.echo(f"farebox: {look.why}", err=True)
    if plain:
        show_once(scraping, place, as_json=as_json, ascii_only=shown.ascii_only)
    else:
        sys.exit(watch(scraping, place, shown))


def _is_in_browser() -> bool:
    """Whether Textual's web server started this process: then its pipes are a screen."""
    return os.environ.get("TEXTUAL_DRIVER", "").startswith("textual.drivers.web_driver")


def _refuse_engine_options() -> None:
    """What describes an engine has no meaning for a store, which knows its engines."""
    given = click.get_current_context().params
    wrong = [flag for flag, name in _ENGINE.items() if given.get(name) is not None]
    if wrong:
        raise InputError(f"{', '.join(wrong)} goes with an address (http://HOST:PORT), not with a store")


def print_snapshot(store: Path, *, as_json: bool = False, ascii_only: bool = False) -> None:
    """Print what the live screen would show now, as plain text or JSON."""
    from ..storage.live import LiveReader
    from ..tui.feed import Feed
    from ..tui.glyphs import glyphs_for
    from ..tui.plain import plain_snapshot, to_json

    reader = LiveReader(store)
    try:
        snapshot = Feed(reader, peaks=gpu_peaks).poll()
    finally:
        reader.close()
    if as_json:
        click.echo(to_json(snapshot))
    else:
        click.echo(plain_snapshot(snapshot, glyphs_for(sys.stdout.encoding, ascii_only)), nl=False)


@cache
def gpu_peaks(name: str) -> tuple[int, int] | None:
    """Datasheet FLOP/s and bytes/s of a GPU type; None for one that is not in the catalogue."""
    from ..roofline import SpecError, gpu

    try:
        spec = gpu(name)
    except SpecError:
        return None
    return int(spec.bf16_flops), int(spec.bandwidth)
