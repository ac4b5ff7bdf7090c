"""Alerts about money: budgets, token prices and rates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..budgets import outlook
from ..snapshot import Alert

if TYPE_CHECKING:
    from .watch import Watch


def budgets(watch: Watch) -> Iterator[Alert]:
    """Budgets that are broken, or will be in their period at this pace."""
    for budget in watch.snapshot.budgets:
        told = outlook(budget)
        if told is None:
            continue
        yield Alert(
            f"budget:{budget.team}:{budget.period}",
            "bad" if budget.state == "above hard" else "warn",
            told.title,
            told.cause,
            told.step,
        )


def token_prices(watch: Watch) -> Iterator[Alert]:
    """Tokens that have no price although there is a price list."""
    if not watch.prices:
        return
    s = watch.snapshot
    known = {
        (price.model, price.tier)
        for price in watch.prices
        if price.from_ns <= s.now_ns and (price.to_ns is None or s.now_ns < price.to_ns)
    }
    model = s.engine.model
    tiers = sorted({row.tier for row in s.tenants} - {tier for name, tier in known if name == model})
    if not tiers:
        return
    tokens = sum(row.prompt_tokens + row.output_tokens for row in s.tenants if row.tier in tiers)
    yield Alert(
        "price",
        "warn",
        f"tokens without price: {model}, {' and '.join(tiers)}",
        f"{tokens:,} tokens of the last minute are of a model and tier that the price list does not have; a total over "
        "them is a lower bound.",
        "Add the price to the list and bring it in: farebox prices import STORE prices.csv",
    )


def rates(watch: Watch) -> Iterator[Alert]:
    """GPU time that has no rate."""
    s = watch.snapshot
    if s.money is not None or s.unit != "GPU-ms":
        return
    yield Alert(
        "rate",
        "warn",
        f"no price for an hour of {s.engine.gpu_type}",
        f"{s.money_reason or 'There is no rate'}: figures are GPU time instead of money.",
        "Set one: farebox rates add STORE --gpu-type … --price 4.29 --from beginning",
    )
