"""One page as numbers: old and new names, data-parallel engines, what is missing and why."""

import json
from pathlib import Path

import pytest
from scrape_pages import case, looks_at, page_of

from farebox.collector.scrape.detect import detect, unknown_families, why_unknown
from farebox.collector.scrape.mapping import engines
from farebox.collector.scrape.page import read_page
from farebox.collector.scrape.reading import Reader, Reading
from farebox.collector.scrape.setup import Setup


def read(text: str) -> Reading:
    page = read_page(text)
    engine = detect(page)
    assert engine is not None, why_unknown(page)
    return Reader(engine).read(page)


@pytest.mark.parametrize("name", ["B01.old.prom", "B01.new.prom", "B01.both.prom"])
def test_old_and_new_names_are_one_truth(name: str):  # B01
    reading = read(case(name))
    assert reading.kv_ratios == (0.625,)
    assert (reading.counters["cached_tokens"], reading.counters["cache_queries"]) == (48_000, 120_000)


def test_news_of_a_release_are_listed():  # B01
    assert unknown_families(read_page(case("B01.new.prom")), engines()["vllm"]) == ["vllm:brand_new_thing"]


def test_data_parallel_engines_are_summed_and_their_caches_told_apart():  # B03
    reading = read(case("B03.prom"))
    assert (reading.gauges["running"], reading.gauges["waiting"]) == (17, 3)
    assert (reading.counters["output_tokens"], reading.counters["prompt_tokens"]) == (5_500_000, 11_500_000)
    assert reading.kv_ratios == (0.81, 0.22)
    assert reading.gauges["kv_ratio"] == 0.81


def test_a_dead_worker_is_not_counted():  # B05
    template, scrapes = case("B05.prom"), json.loads(case("B05.seq.json"))["scrapes"]
    reader = Reader(engines()["sglang"])
    seen = []
    for scrape in scrapes:
        text = template.replace(" 3.0", f" {scrape['pid910']}").replace(" 9.0", f" {scrape['pid455']}")
        seen.append(reader.read(read_page(text)))
    assert "running" not in seen[0].gauges
    assert "which of them lives is not known yet" in seen[0].missing["running"]
    assert [reading.gauges["running"] for reading in seen[1:]] == [5, 2, 4, 3]


def test_sglang_with_colon_and_underscore():  # B06
    for name in ("B06.colon.prom", "B06.underscore.prom"):
        reading = read(case(name))
        assert reading.engine.kind == "sglang"
        assert (reading.gauges["running"], reading.gauges["waiting"], reading.kv_ratios) == (6, 2, (0.41,))


def test_a_page_without_model_metrics_is_no_engine():  # B08
    page = read_page(case("B08.prom"))
    assert detect(page) is None
    assert "no model metrics" in why_unknown(page)
    assert "--disable-log-stats" in why_unknown(page)


def test_llamacpp_without_kv_gauges():  # B18
    reading = read(case("B18.prom"))
    assert "kv_ratio" not in reading.gauges
    assert reading.missing["kv_ratio"].startswith("not exported by this server")
    assert (reading.counters["prompt_tokens"], reading.counters["output_tokens"]) == (18_000, 5_400)
    assert (reading.gauges["running"], reading.gauges["waiting"]) == (2, 1)


@pytest.mark.parametrize(("name", "expected"), [("B23.a.prom", 40), ("B23.b.prom", 40), ("B23.c.prom", None)])
def test_preemptions_absent_are_unknown(name: str, expected: int | None):  # B23
    reading = read(case(name))
    assert reading.counters.get("preemptions") == expected
    assert ("preemptions" in reading.missing) is (expected is None)


def test_lora_info_is_no_number_to_use():  # B24
    reading = read(case("B24.prom"))
    assert reading.gauges == {}
    assert reading.counters == {}


def test_created_is_a_start_and_never_tokens():  # B32
    reading = read(case("B32.prom"))
    assert reading.counters["output_tokens"] == 1500
    assert reading.start_s == 1756736798.7


def test_a_name_told_twice_is_missing_with_the_reason():
    reading = read(page_of(num_requests_running=1) + page_of(num_requests_running=2))
    assert "running" not in reading.gauges
    assert "twice with different values" in reading.missing["running"]


def test_ranks_that_tell_the_same_count_once():
    page = "".join(f'sglang:num_running_reqs{{tp_rank="{tp}",pp_rank="0",dp_rank="{dp}"}} {3 + dp}\n'
                   for dp in (0, 1) for tp in (0, 1, 2, 3))  # fmt: skip
    assert read(page).gauges["running"] == 7


def test_a_total_beside_its_priorities_counts_once():
    told = "".join(
        f'sglang:num_running_reqs{{priority="{p}",tp_rank="0"}} {n}\n' for p, n in (("", 14), ("-1", 2), ("0", 12))
    )
    assert read(told).gauges["running"] == 14
    assert read('sglang:num_running_reqs{tp_rank="0"} 3\n').gauges["running"] == 3


def test_a_model_that_others_lead_to_is_the_one_that_counts():
    told = "".join(
        f'nv_inference_request_success{{model="{model}"}} 59\n'
        f'nv_inference_compute_infer_duration_us{{model="{model}"}} {ms}000\n'
        for model, ms in (("ensemble", 900), ("preprocessing", 100), ("tensorrt_llm", 700), ("postprocessing", 100))
    )
    reading = read(told)
    assert (reading.counters["requests"], reading.counters["busy_s"]) == (59, 0.7)
    assert read('nv_inference_request_success{model="vllm_model"} 5\n').counters["requests"] == 5


def test_hits_that_are_told_in_blocks_are_tokens():
    def told(said: str, info: str = "") -> str:
        return f"# HELP vllm:gpu_prefix_cache_hits_total {said}\n{info}vllm:gpu_prefix_cache_hits_total 30\n"

    size = 'vllm:cache_config_info{block_size="16"} 1\n'
    blocks = "GPU prefix cache hits, in terms of number of cached blocks."
    assert read(told(blocks, size)).counters["cached_tokens"] == 480
    assert (
        read(told("GPU prefix cache hits, in terms of number of cached tokens.", size)).counters["cached_tokens"] == 30
    )
    reading = read(told(blocks))
    assert "cached_tokens" not in reading.counters
    assert "size is not on the page" in reading.missing["cached_tokens"]


def test_engines_behind_others_are_still_themselves():
    triton = read('nv_inference_request_success{model="m"} 1\nvllm:prompt_tokens_total{model="m",version="1"} 10\n')
    assert (triton.engine.kind, triton.model, triton.counters["prompt_tokens"]) == ("vllm", "m", 10)
    ray = read('ray_sglang_num_running_reqs{WorkerId="w1"} 2\nray_sglang_num_running_reqs{WorkerId="w2"} 3\n')
    assert (ray.engine.kind, ray.gauges["running"]) == ("sglang", 5)
    earlier = read('ray_vllm:num_requests_running{WorkerId="w1"} 2\nray_vllm:prompt_tokens_total{WorkerId="w1"} 30\n')
    assert (earlier.engine.kind, earlier.counters["prompt_tokens"]) == ("ray", 30)
    seats = "num_requests_running 2\nnum_request_max 64\ngpu_cache_usage_perc 0.5\n"
    nim = read(seats + "prompt_tokens_total 7\ngeneration_tokens_total 9\n")
    assert (nim.engine.kind, nim.gauges["kv_ratio"], nim.facts["seats"], nim.counters["output_tokens"]) == (
        "trtllm",
        0.5,
        64,
        9,
    )
    router = read('vllm:current_qps{server="a"} 2\nvllm:num_requests_running{server="a"} 4\n')
    assert (router.engine.kind, router.engine.has_gpus, router.gauges["running"]) == ("vllm_router", False, 4)


def test_rejected_drafts_are_known():  # C28
    counters = read(case("C28.prom")).counters
    assert counters["output_tokens"] == 3600
    assert counters["draft_tokens"] - counters["accepted_tokens"] == 1400


def test_the_block_size_behind_a_hit_rate_of_nothing():  # G11
    reading = read(case("G11.prom"))
    assert reading.facts == {"kv_blocks": 900, "block_tokens": 784}
    assert (reading.counters["cached_tokens"], reading.counters["cache_queries"]) == (0, 240_000)


def test_hits_of_nothing_are_explained_and_no_fault():  # G11, G02
    look = looks_at(case("G11.prom"))[0]
    assert look.standing == "up"
    assert "0 % hits in the prefix cache: shared prefixes may be shorter than the 784-token block" in (look.why or "")
    assert "hits" not in (looks_at(case("G02.prom"))[0].why or "")
    few = case("G11.prom").replace("240000.0", "240.0")
    assert "hits" not in (looks_at(few)[0].why or "")


def test_a_hit_rate_beside_preemptions_is_not_trusted():  # B30
    assert "sequences were preempted: hits may count" in (looks_at(case("B30.prom"))[0].why or "")
    calm = case("B30.prom").replace("410.0", "0.0")
    assert "preempted" not in (looks_at(calm)[0].why or "")


def test_a_model_of_several_names_goes_by_the_one_that_prices_have():  # B26
    look = looks_at(case("B26.prom"), setup=Setup(gpu="h100", gpus=1, model="gpt-x"))[0]
    assert look.run is not None
    assert look.run.model == "gpt-x"


def test_an_unnamed_model_is_called_after_its_place():  # B26
    look = looks_at("tgi_queue_size 0\n", setup=Setup(gpu="h100", gpus=1))[0]
    assert look.run is not None
    assert look.run.model == "unnamed (http://h:8000)"
    assert read(case("B26.prom")).model == "gpt-x-0613"


CAPTURED = {
    "vllm/metrics_idle.txt": "vllm",
    "vllm/metrics_mid.txt": "vllm",
    "vllm/metrics_after.txt": "vllm",
    "vllm/metrics_preempt.txt": "vllm",
    "vllm/metrics_api2.txt": "vllm",
    "llamacpp/llamacpp_idle.metrics.txt": "llamacpp",
    "llamacpp/llamacpp_np4_mid_c4.metrics.txt": "llamacpp",
    "pages/sglang-0.5-via-dynamo_2026-01.prom": "sglang",
    "pages/trtllm-via-dynamo_2026-01.prom": "trtllm",
    "pages/dynamo-frontend_2026-01.prom": "dynamo",
    "pages/dynamo-docs_vllm.prom": "vllm",
    "pages/dynamo-docs_sglang.prom": "sglang",
    "pages/dynamo-docs_tensorrt-llm.prom": "trtllm",
    "pages/triton_trtllm-backend_readme.prom": "triton",
    "pages/triton_histogram_doc.prom": "triton",
    "pages/dcgm-exporter_netdata-fixture.prom": "dcgm",
}


@pytest.mark.parametrize(("name", "kind"), CAPTURED.items())
def test_captured_pages_are_recognised(shared: Path, name: str, kind: str):
    page = read_page((shared / "data" / name).read_text("utf-8"))
    engine = detect(page)
    assert engine is not None
    assert engine.kind == kind
    assert page.bad_lines == 0


def test_captured_numbers(shared: Path):
    def told(name: str) -> Reading:
        return read((shared / "data" / name).read_text("utf-8"))

    vllm = told("vllm/metrics_mid.txt")
    assert (vllm.gauges["running"], vllm.counters["prompt_tokens"], vllm.counters["output_tokens"]) == (12, 5642, 764)
    assert (vllm.counters["computed_tokens"], vllm.counters["requests"]) == (5642, 13)
    assert (vllm.facts["kv_blocks"], vllm.facts["block_tokens"], vllm.model) == (4096, 128, "tiny")
    assert max(vllm.histograms["ttft"].values()) == 25
    llama = told("llamacpp/llamacpp_np4_mid_c4.metrics.txt")
    assert (llama.gauges["running"], llama.counters["prompt_tokens"], llama.counters["output_tokens"]) == (4, 169, 104)
    sglang = told("pages/sglang-0.5-via-dynamo_2026-01.prom")
    assert (sglang.counters["prompt_tokens"], sglang.counters["output_tokens"]) == (33, 300)
    dynamo = told("pages/dynamo-frontend_2026-01.prom")
    assert (dynamo.counters["prompt_tokens"], dynamo.counters["output_tokens"], dynamo.facts["seats"]) == (33, 300, 2)
    triton = told("pages/triton_histogram_doc.prom")
    assert triton.histograms["ttft"] == {0.1: 8, 0.5: 30, 2.0: 36, 5.0: 37, float("inf"): 37}
    assert told("pages/triton_trtllm-backend_readme.prom").facts["seats"] == 512


@pytest.mark.parametrize("version", ["0.8.5", "0.10.2", "0.12.0", "0.16.0", "0.20.2", "0.26.0", "0.32.0"])
def test_every_version_of_vllm_has_what_the_screen_shows(shared: Path, version: str):
    names = (shared / "data" / "vllm" / f"metrics_{version}.txt").read_text().split()
    scraped = {ending for name in names for ending in (name, f"{name.removesuffix('_total')}_total")}
    reading = read("".join(f'{name}{{engine="0"}} 1\n' for name in scraped))
    assert {"running", "waiting", "kv_ratio"} <= reading.gauges.keys()
    assert {"prompt_tokens", "cached_tokens", "output_tokens", "requests", "preemptions"} <= reading.counters.keys()
