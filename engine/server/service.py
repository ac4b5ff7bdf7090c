"""The service: what a request body asks for, put in line at the engine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from ...version import __version__
from ..arrival import Arrival
from ..config import EngineConfig
from .access import Access, tier
from .answers import Answer
from .bodies import Body, ChatBody, CompletionBody
from .call import Call
from .driver import Driver
from .errors import ApiError
from .metrics import Metrics
from .tokens import Prompt

MOST_RIDES = 1024
"""The most choices of one call, all prompts together."""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What a server offers: names, lengths and limits."""

    model_names: tuple[str, ...]
    """Names that the model is asked for by; answers carry the one that was asked for."""
    max_model_len: int
    """The most tokens of a request, prompt and output."""
    natural_tokens: int = 256
    """Output tokens of a chat that sets no limit."""
    max_num_queued_reqs: int | None = None
    """The most requests that wait for a seat; None: no limit."""
    max_body_bytes: int = 4 * 2**20

    def most_tokens(self, prompt_tokens: int) -> int:
        """Output tokens that there is room for after a prompt."""
        return self.max_model_len - prompt_tokens


class Service:
    """Puts calls in line, or refuses them with an `ApiError`."""

    def __init__(self, config: EngineConfig, offer: Offer, access: Access, driver: Driver, metrics: Metrics) -> None:
        self.config = config
        self.offer = offer
        self.access = access
        self.driver = driver
        self.metrics = metrics

    def ask(self, body: CompletionBody | ChatBody, headers: Mapping[str, str], tenant_id: str) -> tuple[Call, Answer]:
        """Put a body's requests in line; returns the call and the shape of its answer."""
        self._check_model(body)
        asked_tier = tier(headers)
        prompts = [self._prompt(prompt, body) for prompt in body.prompts]
        self._check_queue(len(prompts) * body.n)
        chat = isinstance(body, ChatBody)
        answer_id = f"{'chatcmpl' if chat else 'cmpl'}-{uuid4().hex}"
        arrivals = [
            Arrival(
                request_id="",
                tenant_id=tenant_id,
                tier=asked_tier,
                arrived_ns=self.driver.now_ns,
                prompt_tokens=prompt.tokens,
                output_tokens=self._output_tokens(prompt, body),
                max_tokens=body.limit,
                prefix_ids=prompt.prefix_ids(self.config.block_size, body.cache_salt),
            )
            for prompt in prompts
        ]
        choices = [arrival for arrival in arrivals for _ in range(body.n)]
        named = [arrival._replace(request_id=f"{answer_id}-{index}") for index, arrival in enumerate(choices)]
        call = self.driver.submit(named, body.n)
        return call, Answer(answer_id, int(time.time()), body.model, chat=chat)

    def models(self) -> dict[str, Any]:
        """The answer to `GET /v1/models`."""
        created = int(time.time())
        root = self.offer.model_names[0]
        return {
            "object": "list",
            "data": [
                {
                    "id": name,
                    "object": "model",
                    "created": created,
                    "owned_by": "farebox",
                    "root": root,
                    "parent": None,
                    "max_model_len": self.offer.max_model_len,
                }
                for name in self.offer.model_names
            ],
        }

    def version(self) -> dict[str, str]:
        """The answer to `GET /version`."""
        return {"version": f"farebox-{__version__}"}

    def _check_model(self, body: Body) -> None:
        if body.model not in self.offer.model_names:
            raise ApiError(404, f"The model `{body.model}` does not exist.", "model")

    def _prompt(self, asked: str | list[int], body: Body) -> Prompt:
        prompt = Prompt.of_text(asked) if isinstance(asked, str) else Prompt.of_ids(asked)
        if not prompt.tokens:
            raise ApiError(400, "The prompt is empty: it needs at least one token.", "prompt")
        self._check_length(prompt, body)
        return prompt

    def _check_length(self, prompt: Prompt, body: Body) -> None:
        most, asked = self.offer.max_model_len, body.limit
        if prompt.tokens >= most:
            raise ApiError(
                400,
                f"This model's maximum context length is {most} tokens. However, your request has {prompt.tokens} input"
                " tokens. Please reduce the length of the input messages.",
                "input_tokens",
            )
        if asked is not None and asked > self.offer.most_tokens(prompt.tokens):
            raise ApiError(
                400,
                f"'max_tokens' or 'max_completion_tokens' is too large: {asked}. This model's maximum context length is"
                f" {most} tokens and your request has {prompt.tokens} input tokens ({asked} > {most} -"
                f" {prompt.tokens}).",
                "max_tokens",
            )

    def _check_queue(self, coming: int) -> None:
        if coming > MOST_RIDES:
            raise ApiError(400, f"n times the number of prompts is {coming}; it may be {MOST_RIDES} at most.", "n")
        most = self.offer.max_num_queued_reqs
        if most is not None and self.driver.queued + coming > most:
            self.metrics.refused()
            raise ApiError(429, f"The queue is full: at most {most} requests may wait. Try again later.")

    def _output_tokens(self, prompt: Prompt, body: Body) -> int:
        """As many as asked for; else as many as filler text has by itself, if there is room."""
        if body.limit is not None:
            return body.limit
        return min(self.offer.natural_tokens, self.offer.most_tokens(prompt.tokens))
