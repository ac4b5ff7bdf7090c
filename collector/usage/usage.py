"""Usage: how many tokens a request took, as far as anybody has told."""

from __future__ import annotations

from typing import NamedTuple


class Usage(NamedTuple):
    """Tokens of one request, and times where the engine tells them. None: nobody has told, which is not zero.

    `prompt_tokens` includes cached ones and `output_tokens` includes reasoning, whatever the sender's convention is.
    More cached than prompt tokens stay as they were told; `is_odd` says so.
    """

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    queue_ns: int | None = None
    """Time before the first step."""
    decode_ns: int | None = None
    """Time from the first output token to the last."""

    @property
    def is_odd(self) -> bool:
        """Whether more of the prompt came from the cache than there was."""
        return None not in (self.prompt_tokens, self.cached_tokens) and self.prompt_less_cached < 0

    @property
    def prompt_less_cached(self) -> int:
        """Prompt tokens that had to be computed; what is unknown counts as none."""
        return (self.prompt_tokens or 0) - (self.cached_tokens or 0)

    def merged(self, later: Usage) -> Usage:
        """This and a later snapshot of the same request: running totals only grow, so the larger one counts."""
        return Usage(*map(_larger, self, later))

    def since(self, earlier: Usage) -> Usage:
        """What came on top of an earlier snapshot of the same request."""
        return Usage(*(None if now is None else now - (then or 0) for now, then in zip(self, earlier, strict=True)))


NOTHING_TOLD = Usage()


def _larger(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return max(a, b)
