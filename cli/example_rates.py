"""Example prices of GPUs: to look at and to try reports with, never used by themselves."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import NamedTuple


class ExampleRate(NamedTuple):
    """What somebody asked for one GPU-hour on demand, who, and when it was looked up."""

    gpu_type: str
    level: str
    price: str
    currency: str
    source: str
    date: str


def example_rates() -> list[ExampleRate]:
    """All examples, by GPU type and from low to high."""
    document = tomllib.loads(files("farebox.cli").joinpath("example_rates.toml").read_text("utf-8"))
    return [
        ExampleRate(gpu_type, e["level"], e["price"], "USD", e["source"], e["date"])
        for gpu_type, entries in document.items()
        for e in entries
    ]
