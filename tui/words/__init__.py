"""What the figures of every page mean, in plain words: one text per page."""

from __future__ import annotations

from importlib import import_module

EVERYWHERE = (
    ("1 … 7", "Open a page; Tab and Shift+Tab turn to the next one. Ctrl+P finds pages, engines, models and tenants."),
    ("↑↓ or k j", "Move in a list. c copies the row. Shift and mouse select text in most terminals."),
    ("p or space", "Hold the figures; reading goes on, and nothing is lost."),
)


def terms_of(mode: str) -> tuple[tuple[str, str], ...]:
    """Terms and meanings of a page, its keys among them."""
    terms: tuple[tuple[str, str], ...] = import_module(f".{mode}", __package__).TERMS
    return (*terms, *EVERYWHERE)
