"""What a request asks for, and how it is put to the server so that the answer tells its usage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, cast

from ..usage.fields import Json, child, count, text

METERED = frozenset(
    (
        "completions", "responses", "messages", "embeddings", "rerank", "score", "classify", "pooling",
        "transcriptions", "translations", "invocations", "completion", "infill", "generate", "generate_stream",
    )
)  # fmt: skip
"""Last parts of the paths whose answers are work of the engine: OpenAI's, Anthropic's, vLLM's, llama.cpp's, TGI's."""
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

    def forced(self, forcing: Forcing) -> bytes:
        """The body that asks for as much usage; only what has to be is changed."""
        if not self.streams or not forcing or self.wants_running:
            return self.body
        own = self.fields.get("stream_options")
        if forcing is Forcing.FINAL and self.wants_final:
            return self.body
        options: dict[str, Any] = {**cast("Json", own)} if isinstance(own, Mapping) else {}
        options["include_usage"] = True
        if forcing is Forcing.RUNNING:
            options["continuous_usage_stats"] = True
        if "stream_options" not in self.fields:
            added = json.dumps({"stream_options": options}, separators=(",", ":")).encode()
            return self.body.rstrip()[:-1] + b"," + added[1:]
        return json.dumps({**self.fields, "stream_options": options}, separators=(",", ":")).encode()


def asked_of(method: str, path: str, body: bytes) -> Asked | None:
    """What a request asks for; None: it is not metered."""
    if method != "POST" or not is_metered(path):
        return None
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    is_object = isinstance(fields, dict)
    return Asked(body, cast("Json", fields) if is_object else {}, path.rstrip("/").endswith("/completions"))


def is_metered(path: str) -> bool:
    """Whether a path's answers are work of the engine."""
    path = path.rstrip("/")
    return path.rpartition("/")[2] in METERED or path.endswith(_OLLAMA)


def asks_less(forcing: Forcing, status: int, body: bytes) -> Forcing:
    """How much to ask for after an answer: less, when the server refuses what was forced on a request."""
    if status not in (400, 422) or forcing is Forcing.NOTHING:
        return forcing
    if forcing is Forcing.RUNNING and b"continuous_usage_stats" in body:
        return Forcing.FINAL
    return Forcing.NOTHING if b"stream_options" in body else forcing
