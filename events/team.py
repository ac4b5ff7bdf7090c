"""A team's new name: who was called one way is called another since."""

from typing import Annotated, NamedTuple

from .table import Table, col


class TeamRename(NamedTuple):
    """The team that was called `team` until an instant is called `name` since; a later `team` is another one."""

    team: Annotated[str, col("", "what it was called")]
    name: Annotated[str, col("", "what it is called since")]
    from_ns: Annotated[int, col("UTC ns", "first instant of the new name")]
    recorded_ns: Annotated[int, col("UTC ns", "when it was told")]


TEAM_RENAMES = Table("team_renames", TeamRename, key=("team", "from_ns"), time="from_ns", sort=("from_ns", "team"))
