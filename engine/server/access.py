"""Who asks: the tenant by API key or by a trusted header, the tier by header."""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping, Sequence
from typing import get_args

from ...events import ApiKey, Tier, hash_key
from .errors import ApiError

TIERS: tuple[Tier, ...] = get_args(Tier)
ANONYMOUS = "anonymous"
TIER_HEADER = "x-farebox-tier"
LONGEST_NAME = 128


class Access:
    """Tells tenants apart. A client cannot name its own tenant, unless `tenant_header` names a header to trust.

    As soon as there is a key, revoked ones too, everybody needs one; with `require_key` from the beginning.
    """

    def __init__(self, *, require_key: bool = False, tenant_header: str | None = None) -> None:
        self._require_key = require_key
        self._tenant_header = tenant_header
        self._keys: tuple[ApiKey, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether anybody may ride without a key."""
        return not (self._require_key or self._keys)

    def use(self, keys: Sequence[ApiKey]) -> None:
        """From now on, these are the keys."""
        self._keys = tuple(keys)

    def tenant(self, headers: Mapping[str, str]) -> str:
        """The tenant that a request is from; raises `ApiError` (401, or 400 for a name that is none)."""
        tenant_id = ANONYMOUS if self.is_open else self._tenant_of_key(_bearer(headers))
        named = headers.get(self._tenant_header) if self._tenant_header else None
        if named is None:
            return tenant_id
        if not named.isprintable() or not 0 < len(named) <= LONGEST_NAME:
            raise ApiError(400, f"{self._tenant_header}: a tenant's name has 1 to {LONGEST_NAME} printable characters")
        return named

    def _tenant_of_key(self, key: str | None) -> str:
        if key is None:
            raise ApiError(401, "No API key: send it as `Authorization: Bearer KEY`.")
        hashed, now_ns = hash_key(key), time.time_ns()
        found = [row for row in self._keys if hmac.compare_digest(row.key_hash, hashed)]
        if not found or (found[0].to_ns is not None and found[0].to_ns <= now_ns):
            raise ApiError(401, "Incorrect API key.")
        return found[0].tenant_id


def tier(headers: Mapping[str, str]) -> Tier:
    """The tier asked for, standard unless told; raises `ApiError` (400) for an unknown one."""
    asked = headers.get(TIER_HEADER, "standard").lower()
    for known in TIERS:
        if asked == known:
            return known
    raise ApiError(400, f"{TIER_HEADER}: {asked!r} is not one of {', '.join(TIERS)}", TIER_HEADER)


def _bearer(headers: Mapping[str, str]) -> str | None:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() or None if scheme.lower() == "bearer" else None
