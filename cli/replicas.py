"""Replicas as commands describe them, with the constants that a user has calibrated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..roofline import Replica


def find_replica(
    gpu: str, model: str, weights: str = "bf16", tp: int = 1, kv: str = "bf16", constants: Path | None = None
) -> Replica:
    """The replica of these names; its constants come from the file given, else the user's own, else Farebox's.

    Raises SpecError for names that nobody knows and for what cannot be.
    """
    from ..roofline import Replica
    from ..roofline import gpu as find_gpu
    from ..roofline import model as find_model
    from ..roofline.constants import find_constants

    device = find_gpu(gpu)
    return Replica(device, find_model(model), weights, tp, kv, find_constants(device.name, constants))


def tell_constants(replica: Replica) -> None:
    """Say on standard error which constants time the steps."""
    click.echo(f"step times of {replica.gpu.name}: {replica.origin_constants.origin}", err=True)
