"""A tally: everything that is told about the tokens of one request, and what of it counts."""

from __future__ import annotations

from typing import Literal

from .answers import usage_of
from .fields import Json
from .usage import NOTHING_TOLD, Usage

Source = Literal["api", "engine", "counted"]


class Tally:
    """Adds up what an answer, the events of its stream and the engine say about one request.

    The answer's usage counts before the engine's own counts, and these before pieces that somebody counted in passing;
    what nobody told stays unknown. Snapshots of a stream are running totals: the largest counts, never their sum.
    """

    def __init__(self) -> None:
        self._told: dict[Source, Usage] = dict.fromkeys(("api", "engine", "counted"), NOTHING_TOLD)
        self._taken = NOTHING_TOLD

    @property
    def usage(self) -> Usage:
        """What counts so far, number by number."""
        return Usage(
            *(next((v for v in values if v is not None), None) for values in zip(*self._told.values(), strict=True))
        )

    @property
    def source(self) -> Source | None:
        """Who told the output tokens (without any, the prompt's); None: nobody did."""
        for column in ("output_tokens", "prompt_tokens"):
            for source, usage in self._told.items():
                if getattr(usage, column) is not None:
                    return source
        return None

    def see(self, body: Json) -> Usage:
        """Take note of an answer or of an event of its stream; returns what it told."""
        seen = usage_of(body)
        self.tell("api", seen)
        return seen

    def tell(self, source: Source, usage: Usage) -> None:
        """Take note of a snapshot from somebody."""
        self._told[source] = self._told[source].merged(usage)

    def take(self, *, final: bool = False) -> Usage:
        """What came on top since the last time. Before the end, only what the answer told: nothing is taken back."""
        now = self.usage if final else self._told["api"]
        more, self._taken = now.since(self._taken), self._taken.merged(now)
        return more
