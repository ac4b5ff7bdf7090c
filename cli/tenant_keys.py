"""`farebox tenants key`: which API keys stand for which tenant. A key is hashed as soon as it is read."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ..errors import InputError
from .listing import print_records, print_table, when
from .options import json_option, named_tenant_argument, store_argument

if TYPE_CHECKING:
    from ..events import ApiKey

EPILOG = """\b
Examples
  farebox tenants key add STORE chat                 (asks for the key)
  printenv CHAT_KEY | farebox tenants key add STORE chat
  farebox tenants key list STORE
  farebox tenants key revoke STORE 3f9a01c2
  farebox tenants key export STORE -o /etc/farebox/keys.json      (for the vLLM plugin: FAREBOX_KEYS)
"""
SHORTEST = 16
SHOWN = 12


class HashedKey(NamedTuple):
    """What is kept of a key: its SHA-256 in hex, and its last four characters to tell keys apart."""

    key_hash: str
    hint: str


@click.group(epilog=EPILOG, short_help="Say whose an API key is.")
def key() -> None:
    """Say whose an API key is. Only a key's SHA-256 and its last four characters are ever stored."""


@key.command(epilog=EPILOG)
@store_argument
@named_tenant_argument
def add(store: Path, tenant_id: str) -> None:
    """Add a key, read from standard input or asked for, never from the command line."""
    from ..events import API_KEYS, ApiKey
    from ..storage.store import open_store

    hashed = _hashed(_ask())
    with open_store(store) as opened, opened.changing() as settings:
        known: list[ApiKey] = [row for row in settings.all(API_KEYS) if row.key_hash == hashed.key_hash]
        if not known:
            settings.put(API_KEYS, ApiKey(hashed.key_hash, tenant_id, hashed.hint, time.time_ns(), None))
    if known and (known[0].tenant_id, known[0].to_ns) != (tenant_id, None):
        gone = f", revoked at {when(known[0].to_ns)}" if known[0].to_ns is not None else ""
        raise InputError(f"this key is known already: it is {known[0].tenant_id}'s{gone}; make a new key")
    click.echo(f"{'known already' if known else 'added'}: {hashed.key_hash[:SHOWN]} (…{hashed.hint}) is {tenant_id}'s")


@key.command("list", epilog=EPILOG)
@store_argument
@json_option
def list_keys(store: Path, as_json: bool) -> None:
    """List the keys by hash and hint, revoked ones too."""
    from ..events import API_KEYS
    from ..storage.store import open_store

    with open_store(store) as opened:
        found: list[ApiKey] = opened.settings(API_KEYS)
    if as_json:
        print_records(found)
        return
    rows = [(k.key_hash[:SHOWN], f"…{k.hint}", k.tenant_id, when(k.from_ns), when(k.to_ns, "valid")) for k in found]
    print_table(
        ("key", "ends in", "tenant", "added", "revoked"), rows, "no key: add one with `farebox tenants key add`"
    )


@key.command(epilog=EPILOG)
@store_argument
@click.argument("start", metavar="KEY")
def revoke(store: Path, start: str) -> None:
    """Revoke a key, named by the beginning of its hash as `list` shows it."""
    from ..events import API_KEYS
    from ..storage.store import open_store

    with open_store(store) as opened, opened.changing() as settings:
        found: list[ApiKey] = [row for row in settings.all(API_KEYS) if row.key_hash.startswith(start.lower())]
        if len(found) != 1:
            raise InputError(
                f"{len(found)} keys have a hash that begins with {start!r}: look with `farebox tenants key list`"
            )
        if found[0].to_ns is None:
            settings.put(API_KEYS, found[0]._replace(to_ns=time.time_ns()))
    state = "revoked" if found[0].to_ns is None else "was revoked already"
    click.echo(f"{found[0].key_hash[:SHOWN]} (…{found[0].hint}), {found[0].tenant_id}'s, {state}")


@key.command(epilog=EPILOG)
@store_argument
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file to replace.")
def export(store: Path, output: Path | None) -> None:
    """Write the valid keys as JSON, tenant by SHA-256, for whoever tells tenants apart outside of the store."""
    from ..events import API_KEYS
    from ..storage.store import open_store

    with open_store(store) as opened:
        found: list[ApiKey] = opened.settings(API_KEYS)
    now_ns = time.time_ns()
    valid = {row.key_hash: row.tenant_id for row in found if row.to_ns is None or row.to_ns > now_ns}
    text = json.dumps(valid, indent=1, ensure_ascii=False)
    if output is None:
        click.echo(text)
        return
    _replace(output, text + "\n")
    click.echo(f"{len(valid)} keys in {output}", err=True)


def _replace(path: Path, text: str) -> None:
    """Write a file so that readers see the old one or the new one, and nobody but its owner can."""
    made = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        made.touch(mode=0o600)
        made.write_text(text, encoding="utf-8")
        made.replace(path)
    except OSError as error:
        made.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror}") from None


def _ask() -> str:
    if sys.stdin.isatty():
        return click.prompt("Key", hide_input=True, err=True)
    return sys.stdin.read()


def _hashed(text: str) -> HashedKey:
    from ..events import hash_key

    secret = text.strip()
    if len(secret) < SHORTEST or any(letter.isspace() for letter in secret):
        raise InputError(
            f"a key is one word of at least {SHORTEST} characters: a shorter one can be guessed from its hash"
        )
    return HashedKey(hash_key(secret), secret[-4:])
