"""What every bill on the command line is asked for: a period, groups, and the method."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..errors import InputError
from .clock import instant
from .options import PRICE, CurrencyType

if TYPE_CHECKING:
    from ..costing.periods import Period
    from ..costing.rating import IdlePolicy
    from ..costing.report import By

IDLE_POLICIES = ("separate", "weighted", "even", "reservation")
POLICIES = ("roofline", "sequence", "tokens", "weighted_tokens", "shapley")
COLUMNS = "tenant, team, cost_centre, tier, model, engine, host, gpu_type, phase, day, hour"


class Method(NamedTuple):
    """How a bill is made: by what it is grouped, who pays for idle time, at which rate, who shares a step how."""

    by: tuple[By, ...]
    idle: IdlePolicy
    rate: Decimal | None
    currency: str | None
    policy: str


def method_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that make a `Method`; each is None unless given."""
    options = (
        click.option("--by", help=f"Columns to group by, with commas: {COLUMNS}.  [default: tenant]"),
        click.option(
            "--policy",
            type=click.Choice(POLICIES),
            help="How the riders of a step share its time, split again from the stored steps.  [default: roofline]",
        ),
        click.option("--idle", type=click.Choice(IDLE_POLICIES), help="Who pays for idle time.  [default: separate]"),
        click.option("--rate", type=PRICE, help="Price of a GPU-hour, instead of the rates kept in the store."),
        click.option(
            "--currency", type=CurrencyType(), help="Currency of --rate, and the only one that rates may have."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def method_of(options: dict[str, Any]) -> Method:
    """The method that options ask for, with the defaults where they are silent."""
    return Method(
        groups(options["by"] or "tenant"),
        options["idle"] or "separate",
        options["rate"],
        options["currency"],
        options["policy"] or "roofline",
    )


def groups(by: str) -> tuple[By, ...]:
    """The columns named by `tenant,day`; InputError for one that a report does not have."""
    from ..costing.report import COLUMNS as KNOWN

    names: dict[str, By] = {name: name for name in KNOWN}
    wanted = [part.strip() for part in by.split(",")]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise InputError(f"--by {', '.join(unknown)}: no such column; choose from {', '.join(names)}")
    return tuple(dict.fromkeys(names[name] for name in wanted))


def period_of(text: str, tz: str) -> Period:
    """A period as 2026, 2026-10 or 2026-10-05, or as FROM/TO of dates or instants."""
    from ..costing.periods import Period

    start, slash, end = text.partition("/")
    if slash:
        return Period.between(instant(start, tz), instant(end, tz), tz, text)
    return Period.parse(text, tz)
