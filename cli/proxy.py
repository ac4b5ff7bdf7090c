"""`farebox proxy`: meter an OpenAI-compatible server that knows nothing of tenants."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from .serving_options import (
    authority,
    drain_option,
    needing_extra,
    require_key_option,
    tell_open,
    trusted_header_option,
)

if TYPE_CHECKING:
    from ..collector.proxy.keys import KeySource

EPILOG = """\b
Examples
  farebox proxy --upstream http://127.0.0.1:8000 --store mystore
  farebox proxy --upstream http://127.0.0.1:8000 --store mystore --engine llama-prod --listen 0.0.0.0:8080
  farebox proxy --upstream https://gpu7:8443 --spool /var/lib/farebox/spool --keys keys.toml
  farebox proxy --upstream http://127.0.0.1:8000 --store mystore --upstream-key-env VLLM_API_KEY
  farebox tenants key add mystore chat               (from now on everybody needs a key)
  farebox collect -c farebox.toml                    (takes the records over into the store)
"""
MIB = 2**20


@click.command(epilog=EPILOG, short_help="Meter a server from before it: who asks, for how many tokens.")
@click.option("--upstream", required=True, metavar="URL", help="The server: http://HOST:PORT, or https://HOST.")
@click.option("--engine", "engine_id", help="Name of the engine in records.  [default: the server's host and port]")
@click.option(
    "--listen", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT", help="Port 0: any free one."
)
@click.option("--store", type=click.Path(path_type=Path), help="Store whose spool is written and whose keys are used.")
@click.option("--spool", type=click.Path(path_type=Path), help="Folder of spools, in place of the store's.")
@click.option(
    "--keys", "keys_file", type=click.Path(path_type=Path), help="File of hashed keys, in place of the store's."
)
@require_key_option
@trusted_header_option
@click.option(
    "--tenant-header",
    default="X-Tenant-Id",
    show_default=True,
    metavar="NAME",
    help="Header in which the server is told the tenant.",
)
@click.option("--upstream-key-env", metavar="VARIABLE", help="Variable with the server's own key.")
@click.option("--upstream-key-file", type=click.Path(path_type=Path), help="File with the server's own key.")
@click.option(
    "--ca", type=click.Path(path_type=Path, exists=True), help="Certificates that the server's is checked by."
)
@click.option(
    "--timeout",
    "silent_s",
    type=click.FloatRange(0, min_open=True),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long the server may be silent.",
)
@click.option(
    "--max-body", type=click.IntRange(1), default=64, show_default=True, metavar="MIB", help="The largest request."
)
@click.option(
    "--max-header",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    metavar="KIB",
    help="The longest head of one.",
)
@drain_option
def proxy(
    upstream: str,
    engine_id: str | None,
    listen: str,
    store: Path | None,
    spool: Path | None,
    keys_file: Path | None,
    require_key: bool,
    trust_tenant_header: str | None,
    tenant_header: str,
    upstream_key_env: str | None,
    upstream_key_file: Path | None,
    ca: Path | None,
    silent_s: float,
    max_body: int,
    max_header: int,
    drain_s: int,
) -> None:
    """Pass requests on to an OpenAI-compatible server, byte for byte, and record who asked for how many tokens.

    Each API key is a tenant's (farebox tenants key add, or --keys). Records go to a spool, which `farebox collect`
    takes over. Streams are asked for their usage, and clients that did not ask for it do not see it.
    """
    with needing_extra("farebox proxy"):
        from ..collector.proxy import server
    from ..collector.listening import listen as listen_on
    from ..collector.proxy.app import Rules
    from ..collector.proxy.upstream import Address, Upstream
    from ..engine.server.access import Access

    address = Address.parse(upstream)
    access = Access(require_key=require_key, tenant_header=trust_tenant_header and trust_tenant_header.lower())
    rules = Rules(
        max_body_bytes=max_body * MIB,
        tenant_header=tenant_header.lower().encode(),
        upstream_key=_upstream_key(upstream_key_env, upstream_key_file),
    )
    place = _spool_folder(store, spool)
    keys = _keys(store, keys_file)
    if keys is not None:
        access.use(tuple(keys()))

    with listen_on(*_host_port(listen)) as sock:
        written = server.open_spool(place)
        here = f"http://{authority(*sock.getsockname()[:2])}"
        click.echo(f"passing {here} on to {address.scheme}://{address.authority}{address.path}", err=True)
        click.echo(f"recording into {place} (farebox collect takes it over); Ctrl-C stops", err=True)
        tell_open(is_open=access.is_open)
        server.run(
            Upstream(address, silent_s=silent_s, tls=_tls(ca)),
            access,
            keys,
            written,
            engine_id or address.authority,
            rules,
            sock,
            max_header_bytes=max_header * 1024,
            drain_s=drain_s,
            on_warning=_warn,
        )


def _warn(text: str) -> None:
    click.echo(f"warning: {text}", err=True)


def _spool_folder(store: Path | None, spool: Path | None) -> Path:
    from ..storage.layout import Layout

    if spool is not None:
        return spool
    if store is None:
        raise InputError("say where to record: --store STORE, or --spool FOLDER")
    return Layout(store).spools


def _keys(store: Path | None, keys_file: Path | None) -> KeySource | None:
    from ..collector.proxy.keys import file_keys, store_keys

    if keys_file is not None:
        return file_keys(keys_file)
    if store is None:
        return None
    from ..storage.layout import Layout
    from ..storage.store import create_store

    if not Layout(store).exists:
        create_store(store).close()
    return store_keys(store)


def _upstream_key(variable: str | None, file: Path | None) -> str | None:
    if variable is None and file is None:
        return None
    if variable is not None and file is not None:
        raise InputError("--upstream-key-env and --upstream-key-file: give one of them")
    if file is not None:
        try:
            key, where = file.read_text("utf-8").strip(), f"--upstream-key-file {file}"
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"--upstream-key-file {file}: cannot be read: {error}") from None
    else:
        key, where = os.environ.get(variable or "", "").strip(), f"--upstream-key-env {variable}"
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(f"{where}: there is no key in it (one word of ASCII)")
    return key


def _tls(ca: Path | None) -> Any:
    import ssl

    if ca is None:
        return None
    try:
        return ssl.create_default_context(cafile=str(ca))
    except (ssl.SSLError, OSError) as error:
        raise InputError(f"--ca {ca}: no certificates in it: {error}") from None


def _host_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise InputError(f"--listen {text}: write it as HOST:PORT, as in 127.0.0.1:8080")
    return host, int(port)
