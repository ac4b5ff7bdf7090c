"""How answers say that they ended, in Farebox's words."""

from __future__ import annotations

from ...events import FinishReason
from .fields import Json, child, objects, text

_LENGTH = frozenset(
    {"length", "max_tokens", "max_output_tokens", "limit", "model_length", "model_context_window_exceeded"}
)
_WORDS: dict[str, FinishReason] = {
    "abort": "abort",
    "aborted": "abort",
    "cancelled": "abort",
    "error": "error",
    "failed": "error",
}
_WORST_FIRST: tuple[FinishReason, ...] = ("error", "abort", "length", "stop")


def finish_of(body: Json) -> FinishReason | None:
    """Why the answer ended, or this event of its stream; None: it does not say, so it goes on.

    With several choices the worst reason counts, `length` before `stop`.
    """
    words = [_reason(word) for word in _told(body)]
    return next((reason for reason in _WORST_FIRST if reason in words), None)


def finish_of_status(status: int) -> FinishReason | None:
    """What an HTTP status says about a request: refused, failed, or (None) nothing."""
    if status < 400:
        return None
    return "error" if status >= 500 and status != 503 else "rejected"


def _told(body: Json) -> list[str]:
    choices = [*objects(body, "choices"), *objects(body, "candidates")]
    words = [text(choice, "finish_reason", "finishReason") for choice in choices]
    words.append(text(child(body, "delta"), "stop_reason") or text(body, "stop_reason", "done_reason"))
    if body.get("stop") is True:
        words.append(text(body, "stop_type") or "stop")
    words.append(_of_response(child(body, "response") or body))
    return [word for word in words if word]


def _of_response(response: Json) -> str | None:
    status = text(response, "status")
    if status == "incomplete":
        return text(child(response, "incomplete_details"), "reason") or status
    return status if status in ("completed", "failed", "cancelled") else None


def _reason(word: str) -> FinishReason:
    word = word.lower()
    return "length" if word in _LENGTH else _WORDS.get(word, "stop")
