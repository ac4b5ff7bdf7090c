"""The fleet file: TOML that a team can review. Everything wrong is told with its file, endpoint or route, and key."""

from __future__ import annotations

import tomllib
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from ...roofline import Replica, gpu, model
from ...roofline.constants import find_constants
from ..config import EngineConfig
from .endpoint import Endpoint, load_ns
from .errors import FleetError
from .fleet import Fleet
from .hours import ALL_DAYS, Hours, zone_of
from .route import ANY_LENGTH, TIERS, Route, lengths
from .section import Section

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LIMITS = ("max_num_seqs", "max_num_batched_tokens", "batch_wait_ms", "fast_cap")
_MOST_LOAD_S = 86_400


def read_fleet(path: Path) -> Fleet:
    """The fleet of a TOML file; FleetError for a file, key or value that cannot be used."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise FleetError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FleetError(f"{path}: this is not TOML: {error}") from None
    try:
        return _fleet(Section("", document))
    except FleetError as error:
        raise FleetError(f"{path}: {error}") from None


def _fleet(top: Section) -> Fleet:
    tz, default = top.text("tz", "UTC"), top.text("default", "")
    with top.reading("tz"):
        zone_of(tz)
    endpoints = tuple(read_endpoint(section, tz) for section in top.sections("endpoint", "name"))
    routes = tuple(_route(section) for section in top.sections("route"))
    top.refuse_others()
    return Fleet(endpoints, routes, default)


def read_endpoint(section: Section, tz: str) -> Endpoint:
    """An `[[endpoint]]`; `tz` is the zone of its hours unless it has its own. FleetError names a wrong key."""
    name = section.text("name")
    if not name.isprintable() or not name.strip():
        section.fail("name", "it must be printable text")
    replica = _replica(section)
    engine = _engine(section, name, replica)
    tz = section.text("tz", tz)
    with section.reading("tz"):
        zone_of(tz)
    hours = _hours(section, tz)
    replicas = section.whole("replicas", 1)
    min_replicas = section.whole("min_replicas", 0)
    if hours is None and min_replicas:
        section.fail("min_replicas", "without hours all replicas are always up")
    from_ns, until_ns = (_instant(section, key, tz) for key in ("from", "until"))
    price, currency = section.price(), section.text("currency", "USD")
    if len(currency) != 3 or not currency.isascii() or not currency.isupper():
        section.fail("currency", f'"{currency}" is not a currency; write its ISO 4217 code, as USD or EUR')
    load_seconds = section.seconds("load_seconds", _MOST_LOAD_S)
    section.refuse_others()
    with section.reading():
        return Endpoint(
            name=name,
            engine=engine,
            load_ns=load_ns(replica) if load_seconds is None else load_seconds,
            replicas=replicas,
            min_replicas=min_replicas,
            hours=hours,
            from_ns=from_ns,
            until_ns=until_ns,
            price=price,
            currency=currency,
        )


def _replica(section: Section) -> Replica:
    with section.reading("gpu"):
        kind = gpu(section.text("gpu"))
    with section.reading("model"):
        shape = model(section.text("model"))
    weights, tp = section.text("weights", "bf16"), section.whole("tp", 1)
    kv, file = section.text("kv_cache_dtype", "bf16"), section.text("constants", "")
    with section.reading("constants"):
        constants = find_constants(kind.name, Path(file)) if file else None
    with section.reading():
        return Replica(kind, shape, weights, tp, kv, constants)


def _engine(section: Section, name: str, replica: Replica) -> EngineConfig:
    options: dict[str, Any] = {key: section.count(key) for key in _LIMITS if key in section}
    options |= {key: section.text(key) for key in ("mode", "scheduling_policy") if key in section}
    if "enable_prefix_caching" in section:
        options["enable_prefix_caching"] = section.flag("enable_prefix_caching")
    host = section.text("host", name)
    with section.reading():
        return EngineConfig.of(replica, engine_id=name, host=host, **options)


def _hours(section: Section, tz: str) -> Hours | None:
    text, weekdays = section.text("hours", ""), section.text("weekdays", "")
    if not text and not weekdays:
        return None
    with section.reading("hours" if text else "weekdays"):
        return Hours.parse(text or "00:00-24:00", weekdays or ALL_DAYS, tz)


def _instant(section: Section, key: str, tz: str) -> int | None:
    """A TOML date (its local midnight) or date-time with an offset as UTC ns; None when it is not given."""
    value = section.value(key)
    if value is None:
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=zone_of(tz))
    if not isinstance(value, datetime) or value.tzinfo is None:
        section.fail(key, "write a date as 2026-02-01 or an instant as 2026-02-01T08:00:00Z, without quotes")
    return (value - _EPOCH) // timedelta(microseconds=1) * 1000


def _route(section: Section) -> Route:
    tier, tenant = section.text("tier", ""), section.text("tenant", "")
    if tier and tier not in TIERS:
        section.fail("tier", f'"{tier}" is not one of {", ".join(TIERS)}')
    with section.reading("prompt_tokens"):
        prompt = lengths(section.text("prompt_tokens")) if "prompt_tokens" in section else ANY_LENGTH
    endpoint = section.text("endpoint")
    section.refuse_others()
    return Route(endpoint, cast(Any, tier or None), tenant or None, prompt)
