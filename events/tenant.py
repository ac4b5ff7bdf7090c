"""A tenant: who it belongs to, and from when to when."""

from hashlib import sha256
from typing import Annotated, NamedTuple

from .table import Table, col

UNKNOWN_TENANT = "unknown"
"""The tenant of what nobody is known to have asked for."""


class Tenant(NamedTuple):
    """What a tenant is called and which team and cost centre pays for it in [from, to).

    A rename or a move is a new row; a deletion ends the last one. History keeps what held at its time.
    """

    tenant_id: Annotated[str, col("", "the tenant, as engines and keys name it")]
    name: Annotated[str, col("", "what people call it")]
    team: Annotated[str | None, col("", "the team that pays; null: not attributed")]
    cost_centre: Annotated[str | None, col("", "its cost centre; null: none")]
    reserved_milligpus: Annotated[int | None, col("GPU/1000", "GPUs kept for it, in thousandths; null: none")]
    from_ns: Annotated[int, col("UTC ns", "first instant it holds")]
    to_ns: Annotated[int | None, col("UTC ns", "first instant it no longer holds; null: open")]


def hash_key(key: str) -> str:
    """What is kept of an API key: its SHA-256, in hex."""
    return sha256(key.encode()).hexdigest()


class ApiKey(NamedTuple):
    """Which tenant an API key stands for. The key itself is never stored."""

    key_hash: Annotated[str, col("", "SHA-256 of the key, in hex")]
    tenant_id: Annotated[str, col("", "the tenant")]
    hint: Annotated[str, col("", "the key's last four characters, to tell keys apart")]
    from_ns: Annotated[int, col("UTC ns", "when it was added")]
    to_ns: Annotated[int | None, col("UTC ns", "when it was revoked; null: valid")]


TENANTS = Table("tenants", Tenant, key=("tenant_id", "from_ns"), time="from_ns", sort=("tenant_id", "from_ns"))
API_KEYS = Table("api_keys", ApiKey, key=("key_hash",), time="from_ns", sort=("tenant_id", "from_ns"))
