"""A comparison for programs: JSON in integers, money in micro-units and as decimal text."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ..costing.rating import money_text
from .comparison import Comparison
from .description import changes_of
from .outcome import Outcome, Waits
from .rows import Side, rows_of
from .table import headline


def to_json(comparison: Comparison) -> str:
    """Everything that the table shows, unrounded."""
    return json.dumps(to_dict(comparison), indent=2) + "\n"


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain JSON values."""
    saved, busy = comparison.saved_micro, comparison.saved_busy_micro
    return {
        "baseline": asdict(comparison.baseline) | {"text": comparison.baseline.text()},
        "headline": headline(comparison),
        "changes": changes_of(comparison.scenario),
        "notes": comparison.notes(),
        "from_ns": comparison.recorded.from_ns,
        "to_ns": comparison.recorded.to_ns,
        "currency": comparison.currency if comparison.before.bill.is_priced else None,
        "saved_micro": saved,
        "saved": None if saved is None else money_text(saved),
        "saved_micro_per_month": None if saved is None else comparison.monthly(saved),
        "saved_busy_micro": busy,
        "freed_gpu_ns": comparison.freed_gpu_ns,
        "freed_gpu_ns_per_month": comparison.monthly(comparison.freed_gpu_ns),
        "before": _outcome(comparison.before),
        "after": _outcome(comparison.after),
        "rows": [
            {"kind": row.kind, "name": row.name, "before": _side(row.before), "after": _side(row.after)}
            for row in rows_of(comparison)
        ],
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    bill = outcome.bill
    return {
        "total_micro": outcome.total_micro,
        "busy_micro": outcome.busy_micro,
        "ledger_gpu_ns": bill.total.gpu_ns,
        "wall_gpu_ns": bill.wall_gpu_ns,
        "residual_gpu_ns": bill.residual_gpu_ns,
        "residual_micro": bill.residual_micro,
        "usage": outcome.usage._asdict() | {"occupancy": outcome.usage.occupancy},
    }


def _side(side: Side) -> dict[str, Any]:
    prices = {
        name: None if (value := getattr(side, name)) is None else str(value) for name in ("per_1k", "per_1k_loaded")
    }
    return {
        "requests": side.requests,
        "gpu_ns": side.gpu_ns,
        "amount_micro": side.amount_micro,
        **prices,
        "waits": None if side.waits is None else _waits(side.waits),
    }


def _waits(waits: Waits) -> dict[str, Any]:
    return {
        "requests": waits.requests,
        "unserved": waits.unserved,
        "ttft": None if waits.ttft is None else asdict(waits.ttft),
        "tpot": None if waits.tpot is None else asdict(waits.tpot),
        "within_slo": waits.within,
    }
