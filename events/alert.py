"""An alert: something that was wrong long enough to tell somebody."""

from typing import Annotated, NamedTuple

from .table import Table, col


class Alert(NamedTuple):
    """One stretch of time in which a rule held of something."""

    rule: Annotated[str, col("", "source-down, idle, unobserved, budget, preemptions or kv-full")]
    about: Annotated[str, col("", "the source, engine or team")]
    since_ns: Annotated[int, col("UTC ns", "when it began")]
    ended_ns: Annotated[int | None, col("UTC ns", "when it was over; null: it goes on")]
    text: Annotated[str, col("", "what is wrong, in words")]


ALERTS = Table("alerts", Alert, key=("rule", "about", "since_ns"), time="since_ns", sort=("since_ns", "rule", "about"))
