"""`farebox serve`: the embedded engine behind OpenAI's API."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from .engine_options import engine_options
from .options import PRICE
from .recording import keep_rate
from .replicas import tell_constants
from .serving_options import (
    authority,
    drain_option,
    needing_extra,
    require_key_option,
    tell_open,
    trusted_header_option,
)

if TYPE_CHECKING:
    from ..collector.embedded import EmbeddedEngine
    from ..engine.config import EngineConfig
    from ..engine.server.service import Offer

EPILOG = """\b
Examples
  farebox serve --gpu h100 --model llama-3-8b --rate 4.29         (then: farebox top farebox-serve)
  farebox serve --model llama-3-70b --tp 4 --port 8001 --store mystore
  farebox serve --served-model-name gpt-4o --max-num-queued-reqs 100
  farebox tenants key add farebox-serve chat                      (from now on everybody needs a key)
  curl http://127.0.0.1:8000/v1/completions -H 'Content-Type: application/json' \\
    -d '{"model": "llama-3-8b", "prompt": "Who pays?", "max_tokens": 20}'
"""
LONGEST_CONTEXT = 131_072


@click.command(epilog=EPILOG, short_help="Serve OpenAI's API from the embedded engine.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8000, show_default=True, help="0 takes any free one.")
@engine_options
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    default=Path("farebox-serve"),
    show_default=True,
    help="Folder to record into.",
)
@click.option("--rate", type=PRICE, help="Price of a GPU-hour; kept in the store.")
@click.option(
    "--served-model-name", "names", multiple=True, help="Name to ask for; may be given again.  [default: the model's]"
)
@click.option(
    "--max-model-len",
    type=click.IntRange(1, 2**31),
    help=f"The most tokens of a request, prompt and output.  [default: what the KV cache holds, at most"
    f" {LONGEST_CONTEXT}]",
)
@click.option(
    "--natural-tokens",
    type=click.IntRange(1, 2**31),
    default=256,
    show_default=True,
    help="Output tokens of a chat that sets no limit.",
)
@click.option("--max-num-queued-reqs", type=click.IntRange(1), help="The most requests that wait.  [default: no limit]")
@require_key_option
@trusted_header_option
@drain_option
def serve(
    engine: EmbeddedEngine,
    host: str,
    port: int,
    store: Path,
    rate: Decimal | None,
    names: tuple[str, ...],
    max_model_len: int | None,
    natural_tokens: int,
    max_num_queued_reqs: int | None,
    require_key: bool,
    trust_tenant_header: str | None,
    drain_s: int,
) -> None:
    """Serve OpenAI's API from the embedded engine, in real time, and record every step.

    Answers are filler text of exactly the length asked for; they take as long as the step model says. Each API key is a
    tenant's (farebox tenants key add). The header X-Farebox-Tier asks for a tier: fast, standard or batch.
    """
    with needing_extra("farebox serve"):
        from ..collector import serving
        from ..collector.listening import listen
    from ..engine.server.access import Access
    from ..engine.server.service import Offer
    from ..storage.store import create_store

    offer = Offer(
        model_names=names or (engine.replica.model.name,),
        max_model_len=_max_model_len(engine.config([]), max_model_len),
        natural_tokens=natural_tokens,
        max_num_queued_reqs=max_num_queued_reqs,
    )
    access = Access(require_key=require_key, tenant_header=trust_tenant_header)
    with listen(host, port) as sock, create_store(store) as opened:
        keep_rate(opened, rate, "farebox serve")

        def tell(config: EngineConfig) -> None:
            _tell(config, offer, sock.getsockname(), store, is_open=access.is_open)
            tell_constants(engine.replica)

        serving.serve(engine, offer, access, opened, sock, drain_s=drain_s, on_start=tell)


def _max_model_len(config: EngineConfig, asked: int | None) -> int:
    """The longest request, which the KV cache must hold alone."""
    room = config.usable_blocks * config.block_size
    if asked is not None and asked > room:
        raise InputError(
            f"--max-model-len {asked}: the KV cache of {config.gpus}×{config.gpu_type} holds {room} tokens"
        )
    return min(room, LONGEST_CONTEXT) if asked is None else asked


def _tell(config: EngineConfig, offer: Offer, address: Any, store: Path, *, is_open: bool) -> None:
    where = f"http://{authority(*address[:2])}/v1"
    click.echo(f"serving {', '.join(offer.model_names)} ({config.gpus}×{config.gpu_type}) on {where}", err=True)
    click.echo(f"recording into {store} (farebox top {store}); Ctrl-C stops", err=True)
    tell_open(is_open=is_open)
