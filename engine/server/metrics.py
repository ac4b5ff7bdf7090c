"""The metrics page: vLLM's names, labels and buckets, so that what reads a vLLM reads this server."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ...events import Request, Step
from ...version import __version__
from ..config import EngineConfig
from ..occupancy import Occupancy
from .histogram import Histogram, up_to

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
QUEUE_LIMIT = "max_num_queued_reqs"

_NS_PER_S = 1_000_000_000
_TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_FAST_FIRST_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1)
_FIRST_S = (*_FAST_FIRST_S, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560)
_REQUEST_S = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
_STEP_TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)

_FINISHED_REASONS = ("stop", "length", "abort", "error", "repetition")

_COUNTERS = {
    "estimated_flops_per_gpu": "Floating point operations per GPU, by the step model.",
    "estimated_read_bytes_per_gpu": "Bytes read from memory per GPU, by the step model.",
    "prefix_cache_queries": "Prefix cache queries, in terms of number of queried tokens.",
    "prefix_cache_hits": "Prefix cache hits, in terms of number of cached tokens.",
    "num_preemptions": "Cumulative number of preemption from the engine.",
    "prompt_tokens": "Number of prefill tokens processed.",
    "prompt_tokens_cached": "Number of cached prompt tokens.",
    "generation_tokens": "Number of generation tokens processed.",
}
_HISTOGRAMS = {
    "iteration_tokens_total": "Histogram of number of tokens per engine_step.",
    "time_to_first_token_seconds": "Histogram of time to first token in seconds.",
    "inter_token_latency_seconds": "Histogram of inter-token latency in seconds.",
    "request_time_per_output_token_seconds": "Histogram of time_per_output_token_seconds per request.",
    "e2e_request_latency_seconds": "Histogram of e2e request latency in seconds.",
    "request_queue_time_seconds": "Histogram of time spent in WAITING phase for request.",
    "request_inference_time_seconds": "Histogram of time spent in RUNNING phase for request.",
    "request_prefill_time_seconds": "Histogram of time spent in PREFILL phase for request.",
    "request_decode_time_seconds": "Histogram of time spent in DECODE phase for request.",
    "request_prompt_tokens": "Number of prefill tokens processed.",
    "request_generation_tokens": "Number of generation tokens processed.",
    "request_max_num_generation_tokens": "Histogram of maximum number of requested generation tokens.",
    "request_params_n": "Histogram of the n request parameter.",
    "request_params_max_tokens": "Histogram of the max_tokens request parameter.",
    "request_num_preemptions": "Histogram of the number of times a request was preempted.",
    "request_prefill_kv_computed_tokens": "Histogram of new KV tokens computed during prefill (excluding cached).",
}


class Metrics(Collector):
    """Counts what the engine does; `page` shows it. Times are the engine's own, not those of the network."""

    def __init__(self, config: EngineConfig, model_name: str, max_model_len: int) -> None:
        self._config = config
        self._max_model_len = max_model_len
        self._labels = {"model_name": model_name, "engine": "0"}
        self._created = time.time()
        self._counters: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._refused = 0
        self._histograms = {name: Histogram(_bounds(name, max_model_len)) for name in _HISTOGRAMS}
        self._occupancy: Callable[[], Occupancy] = lambda: Occupancy(0, 0, 0, config.usable_blocks)
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def watch(self, occupancy: Callable[[], Occupancy]) -> None:
        """Ask `occupancy` for the gauges, whenever the page is read."""
        self._occupancy = occupancy

    def step(self, step: Step) -> None:
        """Count a step."""
        prompt = step.prefill_tokens - step.recomputed_tokens + step.cached_tokens
        self._counters["estimated_flops_per_gpu"] += (step.flops or 0) // step.gpus
        self._counters["estimated_read_bytes_per_gpu"] += (step.bytes or 0) // step.gpus
        self._counters["prefix_cache_queries"] += prompt
        self._counters["prefix_cache_hits"] += step.cached_tokens
        self._counters["prompt_tokens"] += prompt
        self._counters["prompt_tokens_cached"] += step.cached_tokens
        self._counters["generation_tokens"] += step.output_tokens
        self._counters["num_preemptions"] += step.preemptions
        self._histograms["iteration_tokens_total"].observe(step.prefill_tokens + step.decode_tokens)

    def first_token(self, wait_ns: int) -> None:
        """Count a first token that came so long after the arrival."""
        self._histograms["time_to_first_token_seconds"].observe(wait_ns / _NS_PER_S)

    def inter_token(self, gap_ns: int, times: int) -> None:
        """Count tokens that each came so long after the one before."""
        self._histograms["inter_token_latency_seconds"].observe(gap_ns / _NS_PER_S, times)

    def request(self, request: Request, params_n: int) -> None:
        """Count a request that ended; `params_n` is how many choices it was one of."""
        self._ended[request.finish_reason] += 1
        if request.finish_reason not in ("stop", "length"):
            return
        for name, value in _figures(request, params_n):
            if value is not None:
                self._histograms[name].observe(value)

    def refused(self) -> None:
        """Count a request that found the queue full."""
        self._refused += 1

    def page(self) -> bytes:
        """The page in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """All families, as prometheus_client asks for them."""
        yield from self._gauges()
        for name, help_text in _COUNTERS.items():
            yield self._counter(name, help_text, {"": self._counters[name]})
        cached = self._counters["prompt_tokens_cached"]
        sources = {"local_compute": self._counters["prompt_tokens"] - cached, "local_cache_hit": cached}
        yield self._counter("prompt_tokens_by_source", "Number of prompt tokens by source.", sources, "source")
        ended = {reason: self._ended[reason] for reason in _FINISHED_REASONS}
        yield self._counter("request_success", "Count of requests by how they ended.", ended, "finished_reason")
        yield self._refusals()
        for name, help_text in _HISTOGRAMS.items():
            yield self._histogram(name, help_text)

    def _gauges(self) -> Iterator[Metric]:
        now = self._occupancy()
        yield self._gauge("num_requests_running", "Number of requests in model execution batches.", now.running)
        yield self._gauge("num_requests_waiting", "Number of requests waiting to be processed.", now.waiting)
        help_text = "Number of waiting requests by reason."
        yield self._gauge("num_requests_waiting_by_reason", help_text, now.waiting, {"reason": "capacity"})
        used = now.kv_blocks_used / now.kv_blocks_total
        yield self._gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", used)
        yield self._gauge("cache_config_info", "Information of the LLMEngine CacheConfig", 1, self._cache_config())
        info = GaugeMetricFamily("farebox_engine_info", "Who wrote this page.", labels=["version"])
        info.add_metric([__version__], 1)
        yield info

    def _cache_config(self) -> dict[str, str]:
        config, tokens = self._config, self._config.usable_blocks * self._config.block_size
        return {
            "block_size": str(config.block_size),
            "num_gpu_blocks": str(config.kv_blocks),
            "kv_cache_size_tokens": str(tokens),
            "kv_cache_max_concurrency": f"{tokens / self._max_model_len:.2f}",
            "kv_cache_memory_bytes": str(config.kv_blocks * config.block_bytes // config.gpus),
            "cache_dtype": "auto",
            "enable_prefix_caching": str(config.enable_prefix_caching),
        }

    def _gauge(self, name: str, help_text: str, value: float, more: dict[str, str] | None = None) -> Metric:
        labels = self._labels | (more or {})
        family = GaugeMetricFamily(f"vllm:{name}", help_text, labels=list(labels))
        family.add_metric(list(labels.values()), value)
        return family

    def _counter(self, name: str, help_text: str, values: dict[str, int], label: str | None = None) -> Metric:
        names = [*self._labels, *([label] if label else [])]
        family = CounterMetricFamily(f"vllm:{name}", help_text, labels=names)
        for key, value in values.items():
            labels = [*self._labels.values(), *([key] if label else [])]
            family.add_metric(labels, value, created=self._created)
        return family

    def _refusals(self) -> Metric:
        """These are counted before there is an engine to name."""
        help_text = "Number of admission attempts rejected by a queue limit, by reason."
        family = CounterMetricFamily("vllm:admission_rejections", help_text, labels=["model_name", "reason"])
        family.add_metric([self._labels["model_name"], QUEUE_LIMIT], self._refused, created=self._created)
        return family

    def _histogram(self, name: str, help_text: str) -> Metric:
        histogram = self._histograms[name]
        family = HistogramMetricFamily(f"vllm:{name}", help_text, labels=list(self._labels))
        family.add_metric(list(self._labels.values()), histogram.buckets(), histogram.sum)
        family.add_sample(f"{family.name}_created", self._labels, self._created)
        return family


def _bounds(name: str, max_model_len: int) -> tuple[float, ...]:
    fixed: dict[str, tuple[float, ...]] = {
        "iteration_tokens_total": _STEP_TOKENS,
        "time_to_first_token_seconds": _FIRST_S,
        "inter_token_latency_seconds": _TOKEN_S,
        "request_time_per_output_token_seconds": _TOKEN_S,
        "request_params_n": (1, 2, 5, 10, 20),
        "request_num_preemptions": (1, 2, 3, 4, 5, 10, 20),
    }
    return fixed.get(name) or (_REQUEST_S if name.endswith("_seconds") else up_to(max_model_len))


def _figures(request: Request, params_n: int) -> Iterator[tuple[str, float | None]]:
    """What the histograms count of a request that was served to its end; None: not known."""
    arrived, scheduled, first, finished = (
        request.arrived_ns,
        request.scheduled_ns,
        request.first_token_ns,
        request.finished_ns,
    )
    decode_s, output = _seconds(first, finished), request.output_tokens or 0
    yield "e2e_request_latency_seconds", _seconds(arrived, finished)
    yield "request_queue_time_seconds", _seconds(arrived, scheduled)
    yield "request_inference_time_seconds", _seconds(scheduled, finished)
    yield "request_prefill_time_seconds", _seconds(scheduled, first)
    yield "request_decode_time_seconds", decode_s
    if decode_s is not None and output > 1:
        yield "request_time_per_output_token_seconds", decode_s / (output - 1)
    yield "request_prompt_tokens", request.prompt_tokens
    yield "request_generation_tokens", output
    yield "request_max_num_generation_tokens", output
    yield "request_params_n", params_n
    yield "request_params_max_tokens", request.max_tokens
    yield "request_num_preemptions", request.preemptions
    yield "request_prefill_kv_computed_tokens", (request.prompt_tokens or 0) - (request.cached_tokens or 0)


def _seconds(from_ns: int | None, to_ns: int | None) -> float | None:
    return None if from_ns is None or to_ns is None else (to_ns - from_ns) / _NS_PER_S
