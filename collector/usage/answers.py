"""Usage in answers: the bodies and stream events of OpenAI's APIs, Anthropic's, Gemini's, llama.cpp's and Ollama's."""

from __future__ import annotations

from .fields import Json, child, count, ms_as_ns
from .usage import NOTHING_TOLD, Usage


def usage_of(body: Json) -> Usage:
    """What an answer, or one event of a stream, tells about its request; nothing told gives all None.

    Sources: OpenAI's API reference (chat, completions, responses), Anthropic's (messages), Gemini's (usageMetadata),
    vLLM's `metrics`, llama.cpp's tools/server/README.md (timings), Ollama's docs/api.md.
    """
    told = _told(_usage_object(body))
    for reader in (_of_llamacpp, _of_ollama):
        told = _filled(told, reader(body))
    return _filled(told, _times_of_vllm(child(body, "metrics")))


def _usage_object(body: Json) -> Json:
    """Where a body keeps its usage: at the top, or within the response or message that an event is about."""
    for path in (("usage",), ("response", "usage"), ("message", "usage"), ("usageMetadata",)):
        found = child(body, *path)
        if found:
            return found
    return {}


def _told(usage: Json) -> Usage:
    if "promptTokenCount" in usage:
        return _of_gemini(usage)
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        return _of_openai(usage)
    if "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage:
        return _of_anthropic(usage)
    return _of_responses(usage)


def _of_openai(usage: Json) -> Usage:
    prompt, output = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
    cached = count(child(usage, "prompt_tokens_details"), "cached_tokens")
    reasoning = count(child(usage, "completion_tokens_details"), "reasoning_tokens")
    if reasoning and output is not None and count(usage, "total_tokens") == (prompt or 0) + output + reasoning:
        output += reasoning  # reasoning beside the completion: only then the total holds both
    if cached is None:  # DeepSeek, and LiteLLM's own
        cached = count(usage, "prompt_cache_hit_tokens", "cache_read_input_tokens")
    return Usage(prompt, cached, output, reasoning)


def _of_responses(usage: Json) -> Usage:
    return Usage(
        count(usage, "input_tokens"),
        count(child(usage, "input_tokens_details"), "cached_tokens"),
        count(usage, "output_tokens"),
        count(child(usage, "output_tokens_details"), "reasoning_tokens"),
    )


def _of_anthropic(usage: Json) -> Usage:
    """Anthropic counts what was read from and written to the cache beside `input_tokens`."""
    parts = [count(usage, f"{name}input_tokens") for name in ("", "cache_read_", "cache_creation_")]
    told = [part for part in parts if part is not None]
    return Usage(sum(told) if told else None, parts[1], count(usage, "output_tokens"))


def _of_gemini(usage: Json) -> Usage:
    """Gemini counts thoughts beside the candidates."""
    output, thoughts = count(usage, "candidatesTokenCount"), count(usage, "thoughtsTokenCount")
    both = [part for part in (output, thoughts) if part is not None]
    return Usage(
        count(usage, "promptTokenCount"),
        count(usage, "cachedContentTokenCount"),
        sum(both) if both else None,
        thoughts,
    )


def _of_llamacpp(body: Json) -> Usage:
    """llama.cpp's `prompt_n` is what was computed, `cache_n` what was not; `tokens_evaluated` is the whole prompt."""
    timings = child(body, "timings")
    computed, cached = count(timings, "prompt_n"), count(timings, "cache_n")
    whole = None if computed is None or cached is None else computed + cached
    made = count(timings, "predicted_n")
    return Usage(
        count(body, "tokens_evaluated") if whole is None else whole,
        cached,
        count(body, "tokens_predicted") if made is None else made,
        decode_ns=ms_as_ns(timings, "predicted_ms"),
    )


def _of_ollama(body: Json) -> Usage:
    """Ollama's counts are at the top of the last object, its durations in nanoseconds."""
    return Usage(
        count(body, "prompt_eval_count"),
        None,
        count(body, "eval_count"),
        decode_ns=count(body, "eval_duration"),
    )


def _times_of_vllm(metrics: Json) -> Usage:
    return NOTHING_TOLD._replace(
        queue_ns=ms_as_ns(metrics, "queue_time_ms"),
        decode_ns=ms_as_ns(metrics, "generation_time_ms"),
    )


def _filled(told: Usage, more: Usage) -> Usage:
    """What was told first, and the rest from somewhere else in the same body."""
    return Usage(*(b if a is None else a for a, b in zip(told, more, strict=True)))
