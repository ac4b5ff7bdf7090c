"""What the commands share that serve HTTP: options, what they need installed, and what they say when they begin."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import click

from ..errors import FareboxError

EXTRA = {"h11", "httptools", "prometheus_client", "pydantic", "starlette", "uvicorn"}

require_key_option = click.option(
    "--require-key", is_flag=True, help="Refuse everybody without an API key, even while there is none."
)
trusted_header_option = click.option(
    "--trust-tenant-header", metavar="NAME", help="Header that names the tenant; only behind a gateway."
)
drain_option = click.option(
    "--drain",
    "drain_s",
    type=click.IntRange(0, 86_400),
    default=5,
    show_default=True,
    metavar="SECONDS",
    help="How long running requests may go on after Ctrl-C or SIGTERM.",
)


@contextmanager
def needing_extra(command: str) -> Generator[None]:
    """Imports of what `farebox[serve]` brings; FareboxError where it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in EXTRA:
            raise
        raise FareboxError(f"{command} needs {error.name}: pip install 'farebox[serve]'") from None


def authority(host: str, port: int) -> str:
    """Host and port as a URL has them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def tell_open(*, is_open: bool) -> None:
    """Say so while nobody needs a key."""
    if is_open:
        click.echo("no API key yet: everybody is the tenant anonymous (farebox tenants key add)", err=True)
