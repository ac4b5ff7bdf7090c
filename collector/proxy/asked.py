"""What a request asks for, and how it is put to the server so that the answer tells its usage."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, cast

from ..usage.fields import Json, as_object, child, count, text

METERED = frozenset(
    (
        "completions", "responses", "messages", "embeddings", "rerank", "score", "classify", "pooling",
        "transcriptions", "translations", "invocations", "completion", "infill", "generate", "generate_stream",
        "embedding", "reranking", "encode",
    )
)  # fmt: skip
"""Last parts of the paths whose answers are work of the engine: OpenAI's, Anthropic's, and those of engines."""
_OLLAMA = ("/api/chat", "/api/generate", "/api/embed")
LONGEST_MODEL = 256


class Forcing(IntEnum):
    """How much usage a stream is asked for: what a server does not understand, it is not asked again."""

    NOTHING = 0
    FINAL = 1
    """A last chunk with the totals (OpenAI)."""
    RUNNING = 2
    """Running totals on every chunk as well (vLLM and its kin), so that a client that hangs up is metered exactly."""


@dataclass(frozen=True)
class Asked:
    """One metered request: what of its body matters here."""

    body: bytes
    fields: Json
    is_completion: bool
    """Whether it may carry `stream_options`: chat and text completions."""

    @property
    def streams(self) -> bool:
        """Whether the answer is asked for as a stream of completions."""
        return self.is_completion and self.fields.get("stream") is True

    @property
    def model(self) -> str:
        """The model or adapter asked for; empty: none."""
        return (text(self.fields, "model") or "")[:LONGEST_MODEL]

    @property
    def has_choices(self) -> bool:
        """Whether it asks for more than one answer: then running totals are those of each (vLLM)."""
        found = self.fields.get("prompt")
        prompts = cast("list[object]", found) if isinstance(found, list) else []
        is_batch = len(prompts) > 1 and type(prompts[0]) is not int
        return is_batch or (count(self.fields, "n") or 1) > 1

    @property
    def max_tokens(self) -> int | None:
        """The output limit; None: none."""
        return count(self.fields, "max_completion_tokens", "max_tokens", "max_output_tokens", "n_predict")

    @property
    def wants_final(self) -> bool:
        """Whether the client itself asks for a last chunk of usage."""
        return child(self.fields, "stream_options").get("include_usage") is True

    @property
    def wants_running(self) -> bool:
        """Whether the client itself asks for running totals."""
        return self.wants_final and child(self.fields, "stream_options").get("continuous_usage_stats") is True

    @property
    def wants_timings(self) -> bool:
        """Whether the client itself asks llama.cpp for its timings on every chunk."""
        return self.fields.get("timings_per_token") is True

    def forced(self, forcing: Forcing, *, timings: bool = False) -> bytes:
        """The body that asks for as much usage; only what has to be is changed.

        With `timings` it asks for llama.cpp's timings on every chunk, which are its running totals.
        """
        more: dict[str, Any] = {}
        if self.streams and forcing:
            if options := self._options(forcing):
                more["stream_options"] = options
            if timings and forcing is Forcing.RUNNING and not self.wants_timings:
                more["timings_per_token"] = True
        if not more:
            return self.body
        if more.keys() & self.fields.keys():
            return json.dumps({**self.fields, **more}, separators=(",", ":")).encode()
        return self.body.rstrip()[:-1] + b"," + json.dumps(more, separators=(",", ":")).encode()[1:]

    def _options(self, forcing: Forcing) -> dict[str, Any] | None:
        """The stream options to ask with; None: the client asks for as much itself."""
        if self.wants_running or (forcing is Forcing.FINAL and self.wants_final):
            return None
        running = {"continuous_usage_stats": True} if forcing is Forcing.RUNNING else {}
        return {**child(self.fields, "stream_options"), "include_usage": True, **running}


def asked_of(method: str, path: str, body: bytes) -> Asked | None:
    """What a request asks for; None: it is not metered."""
    if method != "POST" or not is_metered(path):
        return None
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    return Asked(body, as_object(fields), path.rstrip("/").endswith("/completions"))


def is_metered(path: str) -> bool:
    """Whether a path's answers are work of the engine; TGI generates at its root, too."""
    path = path.rstrip("/")
    return not path or path.rpartition("/")[2] in METERED or path.endswith(_OLLAMA)


def asks_less(forcing: Forcing, status: int, body: bytes) -> Forcing:
    """How much to ask for after an answer: less, when the server refuses what was forced on a request."""
    if status not in (400, 422) or forcing is Forcing.NOTHING:
        return forcing
    if forcing is Forcing.RUNNING and b"continuous_usage_stats" in body:
        return Forcing.FINAL
    return Forcing.NOTHING if b"stream_options" in body else forcing
