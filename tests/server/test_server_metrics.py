"""The metrics page: what reads a vLLM reads this."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

CAPTURED = "data/vllm/metrics_after.txt"  # of vLLM 0.32.0; its 2048 tokens of context and 4096 have the same buckets
ELSEWHERE = {"external_", "mm_cache", "estimated_write", "engine_sleep", "prompt_tokens_cached_by_source", "deferred"}
"""What an embedded engine does not have: other instances, images, sleep, cache tiers."""


def series(page: str) -> dict[str, set[str]]:
    """Sample names of vLLM's with their label names, and bucket bounds where there are some."""
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(vllm:\w+){(.*)} ", page, re.MULTILINE):
        if name == "vllm:cache_config_info" or any(part in name + labels for part in ELSEWHERE):
            continue
        kept = re.findall(r"(\w+)=", labels) + re.findall(r'le="[^"]+"|reason="[^"]+"|source="[^"]+"', labels)
        found.setdefault(name, set()).update(kept)
    return found


def values(page: str) -> dict[str, float]:
    """Samples without labels of their own, by name."""
    families = text_string_to_metric_families(page)
    return {sample.name: sample.value for family in families for sample in family.samples if len(sample.labels) == 2}


async def ask(served, tokens: int, **more):
    await served.client().completions.create(model="tiny", prompt=[1] * 30, max_tokens=tokens, **more)


async def test_names_labels_and_buckets_are_those_of_a_real_vllm(serve, shared):
    served = await serve()
    captured = series((shared / CAPTURED).read_text())
    mine = series(served.metrics.page().decode())
    refused = {label for label in captured["vllm:admission_rejections_total"] if "tokens" in label}
    for name in ("vllm:admission_rejections_total", "vllm:admission_rejections_created"):
        captured[name] -= refused
    assert {name: mine.get(name) for name in captured} == captured


async def test_counters_add_up_to_what_was_served(serve):
    served = await serve()
    for tokens in (1, 5, 20):
        await ask(served, tokens)
    await ask(served, 4, n=2)
    found = values((await served.raw("GET", "/metrics"))[1].decode())
    assert found["vllm:prompt_tokens_total"] == 5 * 30
    assert found["vllm:generation_tokens_total"] == 1 + 5 + 20 + 8
    assert found["vllm:time_to_first_token_seconds_count"] == 5
    assert found["vllm:inter_token_latency_seconds_count"] == 34 - 5
    assert found["vllm:request_generation_tokens_sum"] == 34
    assert found["vllm:e2e_request_latency_seconds_count"] == 5
    assert found["vllm:request_params_n_sum"] == 1 + 1 + 1 + 2 + 2
    assert found["vllm:num_requests_running"] == found["vllm:kv_cache_usage_perc"] == 0


async def test_latencies_are_those_of_the_requests(serve):
    served = await serve()
    await ask(served, 11)
    found = values(served.metrics.page().decode())
    (request,) = served.told.requests
    decode_s = (request.finished_ns - request.first_token_ns) / 1e9
    assert found["vllm:time_to_first_token_seconds_sum"] == (request.first_token_ns - request.arrived_ns) / 1e9
    assert found["vllm:inter_token_latency_seconds_sum"] == pytest.approx(decode_s)
    assert found["vllm:request_time_per_output_token_seconds_sum"] == pytest.approx(decode_s / 10)


async def test_gauges_show_who_rides_and_who_waits(serve):
    served = await serve(max_num_seqs=1)
    stream = await served.client().completions.create(model="tiny", prompt="a", n=3, max_tokens=2000, stream=True)
    await served.until(lambda: served.driver.occupancy().waiting == 2)
    found = values(served.metrics.page().decode())
    assert (found["vllm:num_requests_running"], found["vllm:num_requests_waiting"]) == (1, 2)
    assert 0 < found["vllm:kv_cache_usage_perc"] < 0.01
    await stream.close()
    await served.until(lambda: len(served.told.requests) == 3)
    assert 'vllm:request_success_total{engine="0",finished_reason="abort",model_name="tiny"} ' in (
        served.metrics.page().decode()
    )
