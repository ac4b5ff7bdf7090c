"""What a rate is for: a GPU type, a host, an engine, or any GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from .names import gpu_type as gpu_name

if TYPE_CHECKING:
    from ..events import Rate


def scope_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what a rate is for."""
    options = (
        click.option("--gpu-type", help="For GPUs of this type.  [default: for any GPU]"),
        click.option("--host", help="For the GPUs of this host."),
        click.option("--engine", help="For the GPUs of this engine."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def scope_of(gpu_type: str | None, host: str | None, engine: str | None) -> tuple[str, str]:
    """What a rate is for, as scope and name; InputError for more than one thing."""
    given = [(scope, name) for scope, name in (("gpu_type", gpu_type), ("host", host), ("engine", engine)) if name]
    if len(given) > 1:
        raise InputError("a rate is for a GPU type, a host or an engine: name one of them")
    scope, name = given[0] if given else ("any", "")
    return scope, gpu_name(name) if scope == "gpu_type" else name


def described(rate: Rate) -> str:
    """What a rate is for, in words."""
    from ..costing.rating import rate_name

    return rate_name(rate.scope, rate.name)
