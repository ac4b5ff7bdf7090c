"""The keys that clients may ask with: from a store, or from a file of hashes; looked at again every second."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

from ...errors import InputError
from ...events import API_KEYS, ApiKey

_HASH = re.compile(r"[0-9a-f]{64}")
KeySource = Callable[[], Iterable[ApiKey]]
_EXAMPLE = 'write [[key]], sha256 = "…" (printf %s KEY | sha256sum) and tenant = "…"'


def store_keys(place: Path) -> KeySource:
    """The keys of a store (`farebox tenants key add`)."""
    from ...storage.store import open_store

    store = open_store(place)
    return lambda: store.settings(API_KEYS)


def file_keys(path: Path) -> KeySource:
    """The keys of a file, which is read again when it changes; raises `InputError` for one that is wrong now."""
    stamp, keys = _stamp(path), read_keys(path)

    def read() -> Iterable[ApiKey]:
        nonlocal stamp, keys
        newest = _stamp(path)
        if newest != stamp:
            keys, stamp = read_keys(path), newest
        return keys

    return read


def read_keys(path: Path) -> list[ApiKey]:
    """The keys in a file: TOML tables `[[key]]` with `sha256` (hex) and `tenant`, or what `tenants key export` wrote.

    Raises `InputError`.
    """
    try:
        text = path.read_text("utf-8")
        found = _exported(text) if text.lstrip().startswith("{") else _tables(tomllib.loads(text))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}; {_EXAMPLE}") from None
    keys = [_key(path, number, *row) for number, row in enumerate(found, start=1)]
    hashes = [key.key_hash for key in keys]
    if len(set(hashes)) < len(hashes):
        raise InputError(f"{path}: a key stands there twice")
    return keys


def _exported(text: str) -> list[tuple[object, object]]:
    return list(cast("dict[object, object]", json.loads(text)).items())


def _tables(found: dict[str, Any]) -> list[tuple[object, object]]:
    """Hash and tenant of each table; raises ValueError for anything else in the file."""
    tables = found.pop("key", [])
    if found or not isinstance(tables, list):
        raise ValueError(f"{', '.join(found) or 'key'} is not known")
    rows: list[tuple[object, object]] = []
    for number, table in enumerate(cast("list[Any]", tables), start=1):
        fields = cast("dict[str, object]", table) if isinstance(table, dict) else {}
        if fields.keys() != {"sha256", "tenant"}:
            raise ValueError(f"key {number} has other fields")
        rows.append((fields["sha256"], fields["tenant"]))
    return rows


def _key(path: Path, number: int, hashed: object, tenant: object) -> ApiKey:
    if not isinstance(hashed, str) or not _HASH.fullmatch(hashed):
        raise InputError(f"{path}: key {number}: {_EXAMPLE}")
    if not isinstance(tenant, str) or not tenant or not tenant.isprintable():
        raise InputError(f"{path}: key {number}: the tenant's name must be printable text")
    return ApiKey(hashed, tenant, "", 0, None)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    return status.st_mtime_ns, status.st_size
