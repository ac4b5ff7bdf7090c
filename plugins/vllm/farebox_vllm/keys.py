"""API keys: whose they are, from a file that is read again when it changes."""

from __future__ import annotations

import json
import time
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from .log import LOG
from .tenant import UNKNOWN

LOOK_S = 1.0


class Keys:
    """Tenants by the SHA-256 of their keys: a JSON object as `farebox tenants key export` writes it.

    A file that cannot be read leaves the keys as they were, and is complained about once until it can.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tenants: dict[str, str] = {}
        self._stamp: tuple[int, int, int] | None = None
        self._looked = -LOOK_S
        self._is_bad = False

    def tenant(self, key: str) -> str:
        """The tenant that a key stands for."""
        self._look()
        return self._tenants.get(sha256(key.encode("utf-8", "surrogateescape")).hexdigest(), UNKNOWN)

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return
        self._looked = now
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if stamp != self._stamp:
                self._tenants = _read(self._path)
                self._stamp, self._is_bad = stamp, False
        except (OSError, ValueError) as error:
            if not self._is_bad:
                LOG.warning("farebox: FAREBOX_KEYS=%s: %s; keys stay as they were", self._path, error)
            self._is_bad = True


def _read(path: Path) -> dict[str, str]:
    found: Any = json.loads(path.read_text())
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object of key hashes and tenants")
    tenants = cast("dict[str, Any]", found)
    if not all(isinstance(tenant, str) for tenant in tenants.values()):
        raise ValueError("a tenant in it is not a text")
    return {key_hash.lower(): tenant for key_hash, tenant in tenants.items()}
