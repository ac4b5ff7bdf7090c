"""Levers of hardware: other weights, another GPU, a small model for short requests."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from ...engine.config import EngineConfig
from ...roofline import Replica, gpu
from ...roofline.errors import SpecError
from ...roofline.model import WEIGHT_BYTES
from ...roofline.models import model, model_names
from ..configuration import recorded_replica
from ..errors import PlanError
from ..traffic import RecordedRun, groups_of
from ..words import percent_text
from .candidate import Candidate, Look
from .capacity import weekdays, window
from .evidence import quantile

_GENERATION = re.compile(r"\D+\d+")
"""The beginning of a model's name, with its first number: llama-3, qwen2."""
MUCH_SMALLER = 4
"""A small model has at most this part of the large one's parameters."""
SHORT, LEAST_SHORT, MOST_LIMITS = 0.7, 0.1, 2
"""Part of the requests that count as short; fewer, or all but so few, are not worth an endpoint; borders tried."""
BIGGER = (4, 8)
"""So many times the seats are tried for long work."""
MOST_FEWER = 4
"""So many numbers of replicas are tried."""


def quantisation(look: Look) -> Iterator[Candidate]:
    """Smaller weights are streamed in less time."""
    had = {run.config.weights for run in look.recorded.runs}
    if len(had) != 1:
        return
    size = WEIGHT_BYTES[weights] if (weights := had.pop()) in WEIGHT_BYTES else None
    used = look.before.usage.bandwidth_used
    for name in ("fp8", "int4"):
        if size is not None and WEIGHT_BYTES[name] < size:
            evidence = (
                f"steps use {percent_text(used)} of the memory bandwidth, and every one streams all {weights} weights"
            )
            yield Candidate("quantisation", f"Weights in {name}", evidence, ("--set", f"weights={name}"), "hardware")


def other_gpus(look: Look) -> Iterator[Candidate]:
    """GPU types that the store has a price for."""
    known = {run.config.gpu_type for run in look.recorded.runs}
    for rate in look.recorded.rates:
        if rate.scope != "gpu_type" or rate.name in known:
            continue
        evidence = f"{rate.name} has a rate here: {rate.per_gpu_hour} {rate.currency} per GPU-hour"
        yield Candidate("another GPU", f"Move to {rate.name}", evidence, ("--set", f"gpu={rate.name}"), "hardware")


def small_model(look: Look) -> Iterator[Candidate]:
    """Short requests on a small model of the same family, the others in big batches on fewer large replicas."""
    groups = groups_of(look.recorded.runs)
    if len(groups) != 1:
        return
    (name, runs), *_ = groups.items()
    config = runs[0].config
    small = _small_replica(look, config.model)
    if small is None:
        return
    for limit, part in _limits(look):
        few = f"{percent_text(part)} of the requests have less than {limit:,} prompt tokens"
        evidence = f"{few}; {config.model} streams all its weights for them, too"
        lead = ("--route", f"prompt_tokens<{limit}:endpoint=small", "--endpoint", f"small:{_settings(look, small)}")
        title = f"Short requests (below {limit:,} tokens) to {small.model.name} on {small.gpu.name}"
        for what, more in (("", ()), *_rest(name, runs)):
            yield Candidate("small model", title + what, evidence, (*lead, *more), "answers")


def _limits(look: Look) -> list[tuple[int, float]]:
    """Prompt lengths that part short requests from others, and the part that is short.

    Where tenants differ, that is where one's prompts end; else most requests are short.
    """
    prompts = [arrival.prompt_tokens for arrival in look.recorded.arrivals]
    by_tenant: defaultdict[str, list[int]] = defaultdict(list)
    for arrival in look.recorded.arrivals:
        by_tenant[arrival.tenant_id].append(arrival.prompt_tokens)
    ends = sorted({_round_up(quantile(tokens, 0.99)) for tokens in by_tenant.values()})
    parted = [(end, sum(tokens < end for tokens in prompts) / len(prompts)) for end in ends]
    fit = [(end, part) for end, part in parted if LEAST_SHORT < part < 1 - LEAST_SHORT]
    if fit:
        return fit[:MOST_LIMITS]
    limit = _round_up(quantile(prompts, SHORT))
    part = sum(tokens < limit for tokens in prompts) / len(prompts)
    return [(limit, part)] if part < 1 - LEAST_SHORT else []


def _round_up(tokens: int) -> int:
    """Whole hundreds above a length."""
    return (tokens // 100 + 1) * 100


def _settings(look: Look, small: Replica) -> str:
    """An endpoint of a small replica that is up when anybody ever asks."""
    settings = f"gpu={small.gpu.name},model={small.model.name}"
    hours, days = window(look, 0.0), weekdays(look)
    return settings + (f",hours={hours}" if hours else "") + (f",weekdays={days}" if hours and days else "")


def _rest(name: str, runs: Sequence[RecordedRun]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What becomes possible for the large model without short requests: no fast cap, big batches, fewer replicas."""
    config, count = runs[0].config, len({run.run.engine_id for run in runs})
    cap = ("--set", f"{name}:fast_cap=off") if config.fast_cap is not None else ()
    if cap:
        yield ", long work without a fast cap", cap
    for seats in sorted({*(factor * config.max_num_seqs for factor in BIGGER), EngineConfig.max_num_seqs}):
        if config.max_num_seqs < seats <= EngineConfig.max_num_seqs:
            big = ("--set", f"{name}:max_num_seqs={seats}")
            yield f", long work in batches of up to {seats} on the large one", (*cap, *big)
    for fewer in _fewer(count):
        yield f", the others on {fewer} of {count} replicas", (*cap, "--set", f"{name}:replicas={fewer}")


def _fewer(count: int) -> list[int]:
    """Smaller numbers of replicas worth trying."""
    return sorted({1, 2, count // 2, count - 1} & set(range(1, count)))[:MOST_FEWER]


def _small_replica(look: Look, name: str) -> Replica | None:
    """The largest much smaller model of the same family, if possible of its generation, on the cheapest GPU with a rate
    that holds it; null: none.
    """
    try:
        large = model(name)
        device = gpu(look.recorded.runs[0].config.gpu_type)
    except SpecError:
        return None
    family = name.split("-")[0]
    smaller = [model(other) for other in model_names() if other.split("-")[0] == family]
    smaller = [each for each in smaller if each.active_params * MUCH_SMALLER <= large.active_params]
    priced = sorted(
        (float(rate.per_gpu_hour), rate.name)
        for rate in look.recorded.rates
        if _is_plain(rate.scope, rate.per_gpu_hour)
    )
    generation = _GENERATION.match(name)
    alike = generation[0] if generation else family
    for each in sorted(smaller, key=lambda one: (not one.name.startswith(alike), -one.active_params)):
        for gpu_type in [*(name for _, name in priced), device.name]:
            try:
                replica = Replica(gpu(gpu_type), each)
                replica.kv_blocks()
            except SpecError:
                continue
            return replica
    return None


def _is_plain(scope: str, price: str) -> bool:
    return scope == "gpu_type" and "/" not in price


def has_replica(look: Look) -> bool:
    """Whether another replica can be made of what was recorded: its GPU and model are known."""
    try:
        for run in look.recorded.runs:
            recorded_replica(run.config)
    except (PlanError, SpecError):
        return False
    return True
