"""Published cells: priced parts with names instead of numbers, ready to be added up by any column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import arrow
from .api_prices import NO_PRICE
from .cell import NAMES, SCHEMA
from .in_force import FOREVER
from .pricing import Priced, Terms
from .rate_card import NO_RATE
from .segments import Bools, Ints

EXTRA = ("hour", "value", "loaded", "unrated_gpu_ns", "free_tokens")
"""Columns beside a cell's own. `value` is what a price per token is made of: the amount, or GPU-nanoseconds where no
rate is known at all; `loaded` includes idle time."""
_compute: Any = pc


def publish(priced: Priced, terms: Terms) -> pa.Table:
    """The parts as cells (`cell.SCHEMA` and `EXTRA`); a sum over a period's cells is a sum of its parts."""
    parts = priced.parts
    rate, price, is_tenant = (
        arrow.ints(parts, "rate"),
        arrow.ints(parts, "price"),
        arrow.equals(parts, "account", "tenant"),
    )
    tokens = arrow.ints(parts, "prompt_tokens") + arrow.ints(parts, "output_tokens")
    is_rated = rate != NO_RATE
    columns: dict[str, Any] = {name: parts.column(name) for name in NAMES if name in parts.column_names}
    columns |= _spans(parts, terms) | _payers(parts, terms, is_tenant)
    columns |= {name: parts.column(name) for name in ("gpu_ns", "prompt_tokens", "cached_tokens", "output_tokens")}
    columns |= {
        "requests": parts.column("requests"),
        "rate": _words([each.per_gpu_hour for each in terms.card.rates], rate),
        "amount_micro": _known(arrow.ints(parts, "amount"), is_rated),
        "idle_micro": _known(arrow.ints(parts, "idle"), is_rated),
        "api_micro": _known(arrow.ints(parts, "api"), price != NO_PRICE),
        "unpriced_tokens": pa.array(np.where(is_tenant & (price == NO_PRICE), tokens, 0)),
        "correction_of": arrow.same("", parts.num_rows),
        "hour": _hours(parts, terms),
        "value": parts.column("value"),
        "loaded": parts.column("loaded"),
        "unrated_gpu_ns": pa.array(np.where(is_rated, 0, arrow.ints(parts, "gpu_ns"))),
    }
    is_free = (price != NO_PRICE) & terms.prices.is_free(price)
    columns["free_tokens"] = pa.array(np.where(is_free, tokens, 0))
    whole: Any = columns
    table: Any = pa.table(whole)
    return table.select([*SCHEMA.names, *EXTRA])


def _spans(parts: pa.Table, terms: Terms) -> dict[str, Any]:
    """Each part's day, and the stretch of it in which its rate may hold."""
    days, rates = terms.period.days(), terms.card.rates
    day, rate = arrow.ints(parts, "day"), arrow.ints(parts, "rate")
    begins, ends = np.array([span.from_ns for span in days]), np.array([span.to_ns for span in days])
    holds = np.array([*(each.from_ns for each in rates), 0], np.int64)
    until = np.array([*(FOREVER if each.to_ns is None else each.to_ns for each in rates), FOREVER], np.int64)
    return {
        "day": arrow.words([span.name for span in days], day),
        "from_ns": pa.array(np.maximum(begins[day], holds[rate])),
        "to_ns": pa.array(np.minimum(ends[day], until[rate])),
    }


def _payers(parts: pa.Table, terms: Terms, is_tenant: Bools) -> dict[str, Any]:
    """The team and cost centre of tenants' parts."""
    member, nobody = arrow.ints(parts, "member"), len(terms.register.rows)
    code = np.where(is_tenant, np.where(member < 0, nobody, member), nobody + 1)
    names = {"team": terms.register.teams(), "cost_centre": terms.register.cost_centres()}
    return {column: arrow.words([*vocabulary, ""], code) for column, vocabulary in names.items()}


def _hours(parts: pa.Table, terms: Terms) -> object:
    hour = arrow.ints(parts, "hour")
    names = [span.name for span in terms.period.hours()] if terms.hourly else []
    return arrow.words([*names, ""], np.where(hour < 0, len(names), hour))


def _words(vocabulary: list[str], codes: Ints) -> object:
    """Texts by code, null for negative codes."""
    spelled: Any = pa.array(vocabulary, pa.string())
    return spelled.take(pa.array(codes, mask=codes < 0))


def _known(values: Ints, known: Bools) -> object:
    return pa.array(values, mask=~known)
