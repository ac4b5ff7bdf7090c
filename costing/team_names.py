"""Team names: what a team is called now that was called otherwise when somebody wrote its name down.

Only a rename that somebody told makes two names one team. Tenants that move from one team to another are moves, however
many move at once: old time stays with the old team.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ..events import TeamRename


class TeamNames:
    """The renames of teams, in the order in which they hold."""

    def __init__(self, renames: Iterable[TeamRename] = ()) -> None:
        self._next: defaultdict[str, list[TeamRename]] = defaultdict(list)
        for rename in sorted(renames, key=lambda rename: rename.from_ns):
            self._next[rename.team].append(rename)

    def at(self, team: str, since_ns: int, at_ns: int | None = None) -> str:
        """What a team is called at an instant, by default in the end, that was called `team` at `since_ns` (UTC)."""
        while rename := self._after(team, since_ns, at_ns):
            team, since_ns = rename.name, rename.from_ns
        return team

    def former(self) -> dict[str, list[str]]:
        """By the newest name of each renamed team its earlier ones, the latest of them first."""
        renames = sorted((r for renames in self._next.values() for r in renames), key=lambda rename: -rename.from_ns)
        found: defaultdict[str, list[str]] = defaultdict(list)
        for rename in renames:
            newest = self.at(rename.name, rename.from_ns)
            if rename.team not in (newest, *found[newest]):
                found[newest].append(rename.team)
        return {newest: olds for newest, olds in found.items() if olds}

    def _after(self, team: str, since_ns: int, at_ns: int | None) -> TeamRename | None:
        """The first rename of the team after an instant, up to another one."""
        later = (rename for rename in self._next.get(team, ()) if rename.from_ns > since_ns)
        found = next(later, None)
        return found if found and (at_ns is None or found.from_ns <= at_ns) else None
