"""Figures of a plan as people read them; what is not known is a dash."""

from __future__ import annotations

from decimal import Decimal

UNKNOWN = "–"


def wait_text(ns: int | None) -> str:
    """A waiting time in three digits or so."""
    if ns is None:
        return UNKNOWN
    if ns < 1_000_000:
        return f"{ns / 1_000:.0f} µs"
    if ns < 10_000_000:
        return f"{ns / 1_000_000:.1f} ms"
    if ns < 1_000_000_000:
        return f"{ns / 1_000_000:.0f} ms"
    if ns < 100_000_000_000:
        return f"{ns / 1_000_000_000:.2f} s"
    return f"{ns / 60_000_000_000:,.1f} min"


def percent_text(part: float | None) -> str:
    """A part of 0…1 in percent."""
    return UNKNOWN if part is None else f"{100 * part:.1f} %"


def change_text(before: int | None, after: int | None) -> str:
    """By how much a figure moved, in percent of what it was."""
    return moved_text(None if before is None or after is None or not before else after / before - 1)


def moved_text(part: float | None) -> str:
    """A part that came on top, or below zero went off, in percent."""
    return UNKNOWN if part is None else f"{100 * part:+.1f} %"


def price_text(price: Decimal | None, places: int) -> str:
    """A price per 1000 tokens."""
    return UNKNOWN if price is None else f"{price:,.{places}f}"


def hours_text(gpu_ns: int) -> str:
    """GPU time in hours."""
    return f"{gpu_ns / 3_600_000_000_000:,.3f}"
