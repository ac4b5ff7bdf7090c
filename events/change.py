"""A change: what somebody took back or cut short among the settings, and why."""

from typing import Annotated, NamedTuple

from .table import Table, col


class Change(NamedTuple):
    """One setting before and after somebody changed it. Settings hold what is true now, changes how that came."""

    changed_ns: Annotated[int, col("UTC ns", "when")]
    setting: Annotated[str, col("", "the table of the setting, e.g. rates")]
    about: Annotated[str, col("", "what the setting is about, in words")]
    from_ns: Annotated[int, col("UTC ns", "first instant at which the setting held")]
    before: Annotated[str, col("", "the setting before, as JSON")]
    after: Annotated[str | None, col("", "the setting after, as JSON; null: taken back")]
    reason: Annotated[str, col("", "why")]


CHANGES = Table(
    "changes",
    Change,
    key=("changed_ns", "setting", "about", "from_ns"),
    time="changed_ns",
    sort=("changed_ns", "setting", "about", "from_ns"),
)
