"""A sequence: a request on its way through the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arrival import Arrival
from .prefix import Prefix
from .segment import Occupant

if TYPE_CHECKING:
    from .decoders import Decoders


class Sequence:
    """What the engine knows of one request.

    `num_computed`, `num_output`, `blocks` and `gpu_units` stand still while the sequence decodes: all who decode
    advance alike, so `Decoders` keeps them in sums and settles each one when it leaves.
    """

    __slots__ = (
        "arrival",
        "blocks",
        "boarded",
        "cached_tokens",
        "decoding_in",
        "draft_key",
        "drafts",
        "first_token_ns",
        "gpu_units",
        "high_water",
        "joined_shared",
        "joined_step",
        "num_computed",
        "num_output",
        "num_preemptions",
        "number",
        "occupant",
        "prefix",
        "rank",
        "scheduled_ns",
        "target",
    )

    def __init__(self, arrival: Arrival, prefix: Prefix | None = None, number: int = 0, rank: int = 0) -> None:
        self.arrival = arrival
        self.number = number
        """Which arrival of the engine it was."""
        self.rank = rank
        """Lower ones go first."""
        self.prefix = prefix or Prefix()
        self.occupant = Occupant()
        """Its account of shared blocks until it decodes."""
        self.target = arrival.target_tokens
        self.num_output = 0
        self.num_computed = 0
        self.drafts = 0
        """Drafted tokens that its next rows verify."""
        self.draft_key = 0
        """What decides about its drafts."""
        self.high_water = 0
        """Rows computed before a preemption: computing them again is nobody's doing."""
        self.blocks = 0
        """KV blocks that it holds, those that it shares included."""
        self.cached_tokens = 0
        """Prompt tokens that were served from the cache and not its own before."""
        self.boarded = 0
        """Which boarding of the engine its latest one was."""
        self.num_preemptions = 0
        self.scheduled_ns: int | None = None
        self.first_token_ns: int | None = None
        self.gpu_units = 0
        """Its part of the steps so far, in clock units."""
        self.decoding_in: Decoders | None = None
        self.joined_step = 0
        self.joined_shared = 0

    @property
    def request_id(self) -> str:
        """The request's id."""
        return self.arrival.request_id

    @property
    def num_tokens(self) -> int:
        """Tokens so far, prompt and output. The newest output token is not computed yet."""
        return self.arrival.prompt_tokens + self.num_output

    @property
    def own_blocks(self) -> int:
        """KV blocks that it holds and that have no prefix id."""
        return self.blocks - self.prefix.held

    @property
    def most_tokens(self) -> int:
        """Tokens that it will have at its end."""
        return self.arrival.prompt_tokens + self.target

    def preempt(self) -> None:
        """Lose the KV cache: everything computed has to be computed again."""
        self.high_water = max(self.high_water, self.num_computed)
        self.num_computed = 0
        self.blocks = 0
        self.drafts = 0
        self.num_preemptions += 1
