"""Settings: what the operator told the plugin, by environment variables that every process of vLLM inherits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

DEFAULT_CAP_MB = 1024
LEAST_CAP_MB = 32
"""Room for a segment that is written, one that is read, and one to begin."""


class Settings(NamedTuple):
    """What the environment says; None where it says nothing."""

    spool: Path | None
    """Folder under which each EngineCore makes a folder of its own (FAREBOX_SPOOL)."""
    engine: str | None
    """Name of the engine, one per replica (FAREBOX_ENGINE)."""
    model: str | None
    """What the model is called in price lists and by `farebox step` (FAREBOX_MODEL)."""
    keys: Path | None
    """File of `farebox tenants key export`: whose an API key is (FAREBOX_KEYS)."""
    tenant_header: str | None
    """Header that names the tenant, which clients cannot set (FAREBOX_TRUST_TENANT_HEADER)."""
    tier_header: str | None
    """Header that names the tier, likewise (FAREBOX_TRUST_TIER_HEADER)."""
    cap_bytes: int
    """The most that waits on disk for the collector (FAREBOX_SPOOL_CAP_MB)."""


def read_settings() -> Settings:
    """The settings in the environment.

    Raises:
        ValueError: FAREBOX_SPOOL_CAP_MB is not a whole number of 32 or more.
    """
    cap = os.environ.get("FAREBOX_SPOOL_CAP_MB", "") or str(DEFAULT_CAP_MB)
    if not cap.isascii() or not cap.isdigit() or int(cap) < LEAST_CAP_MB:
        raise ValueError(f"FAREBOX_SPOOL_CAP_MB is {cap!r}, not a number of MiB, {LEAST_CAP_MB} or more")
    spool, keys = _text("FAREBOX_SPOOL"), _text("FAREBOX_KEYS")
    return Settings(
        spool=Path(spool) if spool else None,
        engine=_text("FAREBOX_ENGINE"),
        model=_text("FAREBOX_MODEL"),
        keys=Path(keys) if keys else None,
        tenant_header=_header("FAREBOX_TRUST_TENANT_HEADER"),
        tier_header=_header("FAREBOX_TRUST_TIER_HEADER"),
        cap_bytes=int(cap) * 2**20,
    )


def _text(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None


def _header(name: str) -> str | None:
    text = _text(name)
    return text.lower() if text else None
