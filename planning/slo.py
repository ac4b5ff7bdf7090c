"""Latency that somebody promised: how long the first token and each further one may take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase

from .errors import PlanError

_UNITS_NS = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|min)")
EXAMPLE = "ttft=500ms, or voice:ttft=300ms,tpot=50ms"


@dataclass(frozen=True)
class Slo:
    """At most so long for 99 % of a tenant's requests; a limit of None is no promise."""

    tenant: str = "*"
    """A tenant's name, in which `*` stands for any text."""
    ttft_ns: int | None = None
    """From arrival to first token."""
    tpot_ns: int | None = None
    """Mean time between a request's further tokens."""

    @classmethod
    def parse(cls, text: str) -> Slo:
        """Read `ttft=500ms` or `voice:ttft=300ms,tpot=50ms`; PlanError for anything else."""
        tenant, colon, limits = text.rpartition(":")
        if colon and not tenant.strip():
            raise PlanError(f'--slo "{text}": whose? Write it as {EXAMPLE}')
        found: dict[str, int] = {}
        for part in limits.split(","):
            name, _, value = (piece.strip() for piece in part.partition("="))
            if name not in ("ttft", "tpot") or name in found:
                raise PlanError(f'--slo "{text}": write it as {EXAMPLE}')
            found[name] = duration_ns(value, f'--slo "{text}"')
        return cls(tenant.strip() or "*", found.get("ttft"), found.get("tpot"))

    def binds(self, tenant: str) -> bool:
        """Whether it is a promise to this tenant."""
        return fnmatchcase(tenant, self.tenant)


def slo_of(slos: Sequence[Slo], tenant: str) -> Slo | None:
    """The promise to a tenant: the first that binds, so name tenants before `*`; None: none was made."""
    return next((slo for slo in slos if slo.binds(tenant)), None)


def duration_ns(text: str, where: str) -> int:
    """A duration as `300ms` or `1.5s` in nanoseconds; PlanError, which begins with `where`, for anything else."""
    found = _DURATION.fullmatch(text.strip())
    ns = round(float(found[1]) * _UNITS_NS[found[2]]) if found else 0
    if ns < 1:
        raise PlanError(f'{where}: "{text}" is not a duration above zero; write it as 300ms or 1.5s')
    return ns


def duration_text(ns: int) -> str:
    """A duration as `duration_ns` reads it, in the largest unit that leaves no rest."""
    whole = [each for each in _UNITS_NS.items() if ns % each[1] == 0] or [("us", _UNITS_NS["us"])]
    name, unit = whole[-1]
    return f"{Decimal(ns) / unit}{name}"
