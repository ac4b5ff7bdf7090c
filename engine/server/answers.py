"""Answers in OpenAI's shapes: whole ones, and the chunks of a stream."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from .call import Call, Ride
from .tokens import filler, word

DONE = b"data: [DONE]\n\n"
_MARK = "\0"
_MARK_JSON = rb"\u0000"


class Answer:
    """How one call is answered. `chat` tells the two APIs apart; the ids are those of the whole answer."""

    def __init__(self, answer_id: str, created: int, model: str, *, chat: bool) -> None:
        self._chat = chat
        self._head = {"id": answer_id, "created": created, "model": model}

    def whole(self, rides: Sequence[Ride], usage: dict[str, Any]) -> dict[str, Any]:
        """The answer in one piece, for rides that have all ended."""
        kind = "chat.completion" if self._chat else "text_completion"
        choices = [self._whole_choice(ride) for ride in rides]
        return {**self._head, "object": kind, "choices": choices, "usage": usage}

    def stream(self, index: int) -> ChoiceStream:
        """The chunks of one choice."""
        opening = self._chunk([_choice(index, None, delta={"role": "assistant", "content": ""})]) if self._chat else b""
        return ChoiceStream(opening, lambda reason: self._chunk([self._piece(index, _MARK, reason)]))

    def closing(self, usage: dict[str, Any]) -> bytes:
        """The chunk that tells the usage of a stream."""
        return self._chunk([], usage=usage)

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        return sse({**self._head, "object": kind, "choices": choices, **more})

    def _piece(self, index: int, text: str, reason: str | None) -> dict[str, Any]:
        return _choice(index, reason, delta={"content": text}) if self._chat else _choice(index, reason, text=text)

    def _whole_choice(self, ride: Ride) -> dict[str, Any]:
        text, reason = filler(ride.generated), _reason(ride)
        if self._chat:
            return _choice(ride.index, reason, message={"role": "assistant", "content": text})
        return _choice(ride.index, reason, text=text)


class ChoiceStream:
    """Turns what a ride has got into chunks: one event per token, so that clients can count them."""

    def __init__(self, opening: bytes, template: Callable[[str | None], bytes]) -> None:
        self._opening = opening
        self._template = template
        self._before, self._after = template(None).split(_MARK_JSON)
        self._sent: int = 0
        self._ended = False

    def news(self, ride: Ride) -> Iterator[bytes]:
        """The chunks since the last time."""
        if self._ended or (ride.generated == self._sent and ride.ended is None):
            return
        if not self._sent:
            yield self._opening
        last = ride.generated - 1 if ride.ended is not None else None
        for number in range(self._sent, ride.generated):
            if number != last:
                yield self._before + word(number).encode() + self._after
            else:
                yield self._template(_reason(ride)).replace(_MARK_JSON, word(number).encode())
        if last is not None and last < self._sent:
            yield self._template(_reason(ride)).replace(_MARK_JSON, b"")
        self._sent, self._ended = ride.generated, ride.ended is not None


async def events(call: Call, answer: Answer, *, with_usage: bool) -> AsyncIterator[bytes]:
    """The events of a call's stream, in one piece for everything that is new."""
    choices = [answer.stream(ride.index) for ride in call.rides]
    done = False
    while not done:
        await call.news()
        done = call.done  # asked before the news are taken: what comes while they are sent is for the next round
        yield b"".join(piece for ride in call.rides for piece in choices[ride.index].news(ride))
    if with_usage:
        yield answer.closing(usage(call.rides, call.params_n))
    yield DONE


def usage(rides: Sequence[Ride], params_n: int) -> dict[str, Any]:
    """Tokens of a call whose rides have ended; each prompt counts once, however many choices it has."""
    prompt = sum(ride.arrival.prompt_tokens for ride in rides[::params_n])
    completion = sum(ride.generated for ride in rides)
    cached = sum(ride.ended.cached_tokens or 0 for ride in rides[::params_n] if ride.ended is not None)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def sse(payload: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(payload, separators=(",", ":")).encode() + b"\n\n"


def _choice(index: int, reason: str | None, **what: Any) -> dict[str, Any]:
    return {"index": index, **what, "logprobs": None, "finish_reason": reason}


def _reason(ride: Ride) -> str | None:
    return None if ride.ended is None else ride.ended.finish_reason
