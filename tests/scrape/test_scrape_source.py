"""From pages to booked time: busy, idle or unobserved, restarts, who pays, and every token counted once."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries
from scrape_pages import H100, START, S, case, looks_at, page_of, source_of

from farebox.collector.scrape.fetch import FetchError, NobodyListensError
from farebox.collector.scrape.setup import Setup
from farebox.collector.scrape.source import Look
from farebox.collector.scrape.split import Usage
from farebox.collector.scraped import ScrapeRecorder, recorded_until
from farebox.events import INTERVALS, LEDGER, SOURCE_STATES
from farebox.events.buckets import from_text, quantile
from farebox.storage.store import create_store

UP_TO = Setup(gpu=None, gpus=1)
"""Nothing to estimate with."""


def steps_of(looks: list[Look]):
    return [look.step for look in looks if look.step is not None]


def missing_of(look: Look) -> dict[str, str]:
    assert look.interval is not None
    return json.loads(look.interval.missing or "{}")


class Booked:
    """Looks recorded into a store."""

    def __init__(self, folder: Path, looks: list[Look]) -> None:
        with create_store(folder / "store") as store:
            recorder = ScrapeRecorder(store)
            for look in looks:
                recorder.record(look)
            self.runs = store.runs()
            self.ledger = store.read(LEDGER).to_pylist()
            self.intervals = store.read(INTERVALS).to_pylist()
            self.states = store.settings(SOURCE_STATES)
            self.until_ns = max((recorded_until(store, run.engine_id) for run in self.runs), default=0)

    def total(self, column: str, **where: str) -> int:
        lines = (line for line in self.ledger if all(line[name] == value for name, value in where.items()))
        return sum(line[column] for line in lines)

    def check(self) -> None:
        """Every nanosecond of every run's GPUs has one owner."""
        assert self.total("gpu_ns") == sum((run.wall_end_ns - run.started_ns) * run.gpus for run in self.runs)


def test_a_restart_is_a_new_run_and_no_token_is_lost_or_doubled(tmp_path: Path):  # B07
    looks = looks_at(*(case(f"B07.t{n}.prom") for n in range(4)), every_s=60)
    assert [step.output_tokens for step in steps_of(looks)] == [60_000, 1_200, 30_000]
    assert looks[2].ended is not None
    assert "started anew: tokens between" in (looks[2].why or "")
    booked = Booked(tmp_path, looks)
    booked.check()
    assert booked.total("output_tokens") == 91_200
    first, second = booked.runs
    assert first.ended_ns == START + 60 * S
    assert second.started_ns == 1_770_000_100 * S  # as the page says
    assert booked.total("gpu_ns", account="unobserved") == 20 * S
    assert [state.state for state in booked.states] == ["up", "degraded", "up"]


def test_a_counter_that_falls_is_a_restart_without_any_start_on_the_page():
    pages = [page_of(num_requests_running=1, generation_tokens_total=n) for n in (900, 950, 40, 90)]
    looks = looks_at(*pages)
    assert [step.output_tokens for step in steps_of(looks)] == [50, 40, 50]
    assert [bool(look.ended) for look in looks] == [False, False, True, False]


def dp(*rows: tuple[int, int | str], running: int = 1, ends: str = "\n") -> str:
    """A page of data-parallel engines: prompt and output tokens of each."""
    lines = [f'vllm:num_requests_running{{engine="0"}} {running}']
    lines += [f'vllm:prompt_tokens_total{{engine="{n}"}} {prompt}' for n, (prompt, _) in enumerate(rows)]
    lines += [f'vllm:generation_tokens_total{{engine="{n}"}} {output}' for n, (_, output) in enumerate(rows)]
    return "\n".join(lines) + ends


@pytest.mark.parametrize(
    "between",
    [
        dp((100, 1000), (100, "NaN")),
        dp((100, 1000), (100, -5)),
        dp((100, 1000), (100, "1e30")),
        dp((100, 1000), (100, "g@rb")),
        dp((100, 1000), (100, 1000)) + 'vllm:generation_tokens_total{engine="0"} 7\n',
        dp((100, 1000), (100, 10), ends=""),  # cut in the middle of 1000
        dp((100, 1000), (100, 1000)).partition("vllm:gen")[0],
    ],
    ids=["nan", "negative", "absurd", "garbled", "contradicts", "cut", "gone"],
)
def test_a_page_that_loses_a_counter_for_once_neither_loses_nor_doubles_a_token(between: str):
    looks = looks_at(dp((100, 1000), (100, 1000)), between, dp((110, 1020), (110, 1020)))
    assert [step.output_tokens for step in steps_of(looks)] == [0, 40]
    assert not any(look.ended for look in looks)


@pytest.mark.parametrize("ratio", ["7", "1e9", "9e15"])
def test_a_cache_that_is_fuller_than_it_can_be_is_not_known(tmp_path: Path, ratio: str):
    lie = page_of(num_requests_running=1, generation_tokens_total=5, kv_cache_usage_perc=ratio)
    facts = 'vllm:cache_config_info{num_gpu_blocks="1000",block_size="16"} 1\n'
    looks = looks_at(*[lie + facts] * 3)
    assert "no part of a cache" in looks[-1].reading.missing["kv_ratio"]
    Booked(tmp_path, looks).check()


@pytest.mark.parametrize("blocks", ["9" * 30, "²", ""])
def test_a_label_that_is_no_count_costs_only_itself(tmp_path: Path, blocks: str):
    page = page_of(num_requests_running=1, generation_tokens_total=5, kv_cache_usage_perc=0.5)
    looks = looks_at(*[page + f'vllm:cache_config_info{{num_gpu_blocks="{blocks}",block_size="16"}} 1\n'] * 3)
    assert looks[-1].reading.facts == {"block_tokens": 16}
    Booked(tmp_path, looks).check()


def test_another_engine_at_the_same_address_is_another_process():
    tgi = "tgi_batch_current_size 1\ntgi_request_generated_tokens_sum 1000\n"
    looks = looks_at(page_of(num_requests_running=1, generation_tokens_total=100), tgi)
    assert looks[1].ended is not None
    assert looks[1].run != looks[0].run
    assert [step.output_tokens for step in steps_of(looks)] == [1000]  # and not 900 of the one before


def test_a_restart_on_a_page_with_a_bad_line_is_still_one():
    looks = looks_at(dp((100, 1000)), dp((3, 40)) + "g@rb\n", dp((4, 60)) + "g@rb\n")
    assert [look.ended is not None for look in looks] == [False, True, False]
    assert [step.output_tokens for step in steps_of(looks)] == [40, 20]


def test_a_counter_whose_value_was_never_clear_does_not_count_from_zero():
    def pids(first: int, second: int) -> str:
        return (
            f'vllm:num_requests_running 1\nvllm:generation_tokens_total{{pid="1"}} {first}\n'
            f'vllm:generation_tokens_total{{pid="2"}} {second}\n'
        )

    looks = looks_at(pids(1000, 500), pids(1000, 510), pids(1000, 525))
    assert [step.output_tokens for step in steps_of(looks)] == [0, 15]


def test_reachable_without_metrics_is_no_idle_time(tmp_path: Path):  # B08
    looks = looks_at(*[case("B08.prom")] * 3)
    assert [look.run for look in looks] == [None] * 3
    assert looks[0].standing == "down"
    assert "no model metrics" in (looks[0].why or "")
    assert Booked(tmp_path, looks).ledger == []


def test_rates_come_from_counters_not_from_gauges():  # B19
    step = looks_at(case("B19.t0.prom"), case("B19.t1.prom"))[1].step
    assert step is not None
    assert step.output_tokens / 10 == 60
    assert (step.duration_ns, step.basis) == (10 * S, "interval")


def test_idle_is_decided_by_work(tmp_path: Path):  # A19
    booked = Booked(tmp_path, looks_at(*[case("A19.prom")] * 5, every_s=60))
    booked.check()
    assert booked.total("gpu_ns", account="idle", basis="interval") == 240 * S == booked.total("gpu_ns")


def test_one_rider_is_a_batch_of_one():  # A18
    step = looks_at(*[case("A18.prom")] * 2)[1].step
    assert step is not None
    assert (step.running, step.duration_ns) == (1, 10 * S)


def test_created_is_never_added_to_tokens():  # B32
    step = looks_at(*[case("B32.prom")] * 2)[1].step
    assert step is not None
    assert step.output_tokens == 0


def test_counters_of_others_are_not_work(tmp_path: Path):  # B33
    pages = [
        "".join(f"{name} {value}\n" for name, value in scrape.items() if name != "t")
        for scrape in json.loads(case("B33.seq.json"))["scrapes"]
    ]
    looks = looks_at(*pages, every_s=15)
    assert "lmcache" not in (looks[0].why or "")
    assert all("counters of lmcache climb while nobody rides" in (look.why or "") for look in looks[1:])
    assert all(look.standing == "up" for look in looks)
    booked = Booked(tmp_path, looks)
    assert booked.total("gpu_ns", account="idle") == 75 * S == booked.total("gpu_ns")


def test_a_clock_set_back_moves_nothing(tmp_path: Path):  # E13
    told = json.loads(case("E13.seq.json"))
    source = source_of(
        *(page_of(num_requests_running=1, generation_tokens_total=n) for n in told["counter"]), period_s=1
    )
    looks = [source.poll(w * S, m * S) for w, m in zip(told["wall_s"], told["mono_s"], strict=True)]
    rates = [step.output_tokens * S / step.duration_ns for step in steps_of(looks)]
    assert rates == [told["expect_rate"]] * 4
    assert [b.started_ns - a.started_ns for a, b in pairwise(steps_of(looks))] == [S] * 3
    assert "time of day jumped by -8 s" in (looks[3].why or "")
    Booked(tmp_path, looks).check()


def test_a_missed_look_is_unobserved_and_its_tokens_count(tmp_path: Path):
    pages = [page_of(num_requests_running=2, generation_tokens_total=n) for n in (0, 100, 900, 1000)]
    looks = looks_at(pages[0], pages[1], FetchError("nobody listens"), FetchError("nobody listens"), *pages[2:])
    booked = Booked(tmp_path, looks)
    booked.check()
    assert booked.total("output_tokens") == 1000
    assert booked.total("gpu_ns", account="unobserved") == 30 * S
    assert booked.total("gpu_ns", account="tenant", tenant_id="unknown") == 20 * S
    assert missing_of(looks[4])["busy_ns"] == "no page was read in between: this time is not observed"
    assert [(state.state, state.why) for state in booked.states] == [
        ("up", None), ("down", "nobody listens"), ("up", None),
    ]  # fmt: skip
    assert booked.until_ns == START + 50 * S


def test_nothing_is_guessed_without_a_step_model(tmp_path: Path):
    pages = [page_of(num_requests_running=n, generation_tokens_total=t) for n, t in ((0, 0), (3, 60), (0, 90))]
    looks = looks_at(*pages, setup=UP_TO)
    assert {look.step.duration_ns for look in looks if look.step} == {0}
    assert "no step model to ask" in missing_of(looks[1])["busy_ns"]
    booked = Booked(tmp_path, looks)
    booked.check()
    assert booked.total("gpu_ns", account="unobserved") == 20 * S
    assert booked.total("output_tokens") == 90


def test_the_step_model_estimates_and_the_interval_caps():
    pages = [page_of(num_requests_running=n, generation_tokens_total=t) for n, t in ((0, 0), (8, 800), (0, 10**6))]
    little, much = steps_of(looks_at(*pages))
    assert (little.basis, much.basis) == ("estimated", "estimated")
    assert 0.5 * S < little.duration_ns < 2 * S  # 200 steps of 6 ms and a little
    assert little.duration_ns + little.idle_before_ns == 10 * S
    assert much.duration_ns == 10 * S


def test_an_engine_with_a_clock_says_how_long_it_was_busy(tmp_path: Path):
    def tgi(prefill: float, decode: float, tokens: int) -> str:
        return (
            f"tgi_batch_current_size 0\ntgi_request_generated_tokens_sum {tokens}\n"
            f"tgi_request_input_length_sum {tokens}\n"
            f'tgi_batch_inference_duration_sum{{method="prefill"}} {prefill}\n'
            f'tgi_batch_inference_duration_sum{{method="decode"}} {decode}\n'
        )

    looks = looks_at(tgi(0, 0, 0), tgi(1, 3, 100), tgi(1, 3, 100), tgi(5, 11, 300), tgi(5, 11, 300))
    steps = steps_of(looks)
    assert [step.duration_ns for step in steps] == [4 * S, 0, 10 * S, 2 * S]  # what does not fit in belongs to the next
    assert (steps[0].prefill_ns, steps[0].decode_ns, steps[0].basis) == (1 * S, 3 * S, "interval")
    booked = Booked(tmp_path, looks)
    booked.check()
    assert booked.total("gpu_ns", phase="prefill") == S + 10 * S // 3
    assert [interval["busy_ns"] for interval in booked.intervals] == [4 * S, 0, 12 * S, 0]


def test_a_clock_that_is_switched_off_is_no_clock(tmp_path: Path):
    def sglang(tokens: int) -> str:
        return (
            f"sglang:num_running_reqs 2\nsglang:generation_tokens_total {tokens}\n"
            'sglang:forward_execution_seconds_total{category="decode"} 0.0\n'
        )

    looks = looks_at(sglang(100), sglang(300))
    assert [step.duration_ns for step in steps_of(looks)] == [10 * S]
    Booked(tmp_path, looks).check()


@pytest.mark.parametrize("began_s", [3, -100])
def test_all_that_a_process_did_counts_if_nobody_listened_when_it_was_asked(tmp_path: Path, began_s: int):
    told = f"process_start_time_seconds {START // S + began_s}\n"
    pages = [told + page_of(num_requests_running=1, generation_tokens_total=n) for n in (70, 75)]
    booked = Booked(tmp_path, looks_at(NobodyListensError("nobody listens there"), *pages))
    booked.check()
    assert booked.total("output_tokens") == 75
    assert booked.total("gpu_ns", account="unobserved") == (10 - began_s) * S


def test_a_process_that_did_its_work_before_anybody_asked_is_counted_from_now_on():
    old = f"process_start_time_seconds {START // S - 4000}\n" + page_of(
        num_requests_running=1, generation_tokens_total=70
    )
    assert looks_at(NobodyListensError("nobody listens there"), old)[1].step is None
    young = old.replace(str(START // S - 4000), str(START // S + 3))
    assert looks_at(FetchError("a token is wanted", 401), young)[1].step is None


def usage_of(tenant: str, prompt: int, cached: int, output: int) -> Usage:
    return Usage("h:8000", tenant, "standard", 0, prompt, cached, output)


def test_each_phase_is_split_by_the_rows_of_tenants(tmp_path: Path):
    told = iter([[], [usage_of("a", 100, 60, 30), usage_of("b", 160, 0, 10)]])
    pages = [
        page_of(num_requests_running=4, prompt_tokens_total=p, prompt_tokens_cached_total=c, generation_tokens_total=o)
        for p, c, o in ((0, 0, 0), (0, 0, 0), (260, 60, 40))
    ]
    looks = looks_at(*pages, usage=lambda _: next(told))
    booked = Booked(tmp_path, looks)
    booked.check()
    tokens = {
        tenant: [booked.total(f"{name}_tokens", tenant_id=tenant) for name in ("prompt", "cached", "output")]
        for tenant in ("a", "b")
    }
    assert tokens == {"a": [100, 60, 30], "b": [160, 0, 10]}
    step = looks[2].step
    assert step is not None
    assert step.prefill_ns is not None
    assert booked.total("gpu_ns", tenant_id="a", phase="prefill") == round(step.prefill_ns * 40 / 200)
    assert abs(booked.total("gpu_ns", tenant_id="b", phase="decode") - (step.decode_ns or 0) // 4) <= 1
    assert [(cell.tenant_id, cell.phase, cell.seqs) for cell in looks[2].cells if cell.phase == "decode"] == [
        ("a", "decode", 3), ("b", "decode", 1),
    ]  # fmt: skip


def test_without_events_nobody_gets_the_tokens_of_adapters():  # B25
    cells = looks_at(page_of(generation_tokens_total=0, num_requests_running=1), case("B25.prom"))[1].cells
    assert [(cell.tenant_id, cell.output_tokens) for cell in cells] == [("unknown", 100_000)]


def test_events_split_what_the_page_has_under_one_name():  # B25
    events = [json.loads(line) for line in case("B25.events.jsonl").splitlines()]
    told = iter([[usage_of(event["team"], 0, 0, event["output_tokens"]) for event in events]])
    pages = page_of(generation_tokens_total=0, num_requests_running=1), case("B25.prom")
    cells = looks_at(*pages, usage=lambda _: next(told))[1].cells
    assert {cell.tenant_id: cell.output_tokens for cell in cells} == {"t1": 20_000, "t2": 50_000, "t3": 30_000}


def test_n_choices_count_their_prompt_once_for_each():  # B27
    before, look = looks_at(case("B27.t0.prom"), case("B27.t1.prom"))
    assert look.interval is not None
    assert (look.interval.prompt_tokens, look.interval.output_tokens) == (40, 56)
    assert "the page counts their prompt once for each, usages once" in (look.why or "")
    assert look.standing == "up" and "n > 1" not in (before.why or "")


def test_rejected_drafts_are_rows_but_no_output():  # C28
    nothing = "".join(line.rsplit(" ", 1)[0] + " 0\n" for line in case("C28.prom").splitlines())
    step = looks_at(nothing, case("C28.prom"))[1].step
    assert step is not None
    assert (step.output_tokens, step.rejected_tokens, step.decode_tokens) == (3600, 1400, 5000)


def test_a_gateway_has_tokens_by_team_and_no_gpus(tmp_path: Path):
    def page(a: int, b: int) -> str:
        return (
            "litellm_in_flight_requests 1\n"
            f'litellm_output_tokens_metric_total{{team_alias="a",model="m"}} {a}\n'
            f'litellm_output_tokens_metric_total{{team_alias="b",model="m"}} {b}\n'
        )

    booked = Booked(tmp_path, looks_at(page(5, 5), page(35, 15)))
    booked.check()
    assert booked.total("gpu_ns") == 0
    assert [booked.total("output_tokens", tenant_id=team) for team in ("a", "b")] == [30, 10]


@pytest.mark.parametrize("last", [0, 1])
def test_preemptions_and_kv_are_kept_with_the_interval(last: int):  # G04, G05
    if last:
        look = looks_at(case("G05.t0.prom"), case("G05.t1.prom"), every_s=60)[1]
        assert look.interval is not None
        assert (look.interval.preemptions, look.interval.kv_ppm) == (108, (1_000_000,))
        return
    told = json.loads(case("G04.seq.json"))
    pages = [
        page_of(num_requests_running=r, num_requests_waiting=w, kv_cache_usage_perc=kv, num_preemptions_total=p)
        for r, w, kv, p in zip(told["running"], told["waiting"], told["kv"], told["preemptions_total"], strict=True)
    ]
    looks = looks_at(*pages, every_s=told["every_s"])
    assert sum(step.preemptions for step in steps_of(looks)) == 260
    assert [look.interval.waiting for look in looks[1:] if look.interval] == told["waiting"][1:]


def test_histograms_are_kept_as_what_lay_in_each_bucket():
    def page(*counts: int) -> str:
        bounds = ("0.1", "0.5", "1.0", "+Inf")
        return "".join(
            f'vllm:time_to_first_token_seconds_bucket{{le="{b}"}} {n}\n' for b, n in zip(bounds, counts, strict=True)
        ) + page_of(num_requests_running=1)

    look = looks_at(page(5, 5, 6, 6), page(5, 15, 16, 17))[1]
    assert look.interval is not None
    ttft = from_text(look.interval.histograms)["ttft"]
    assert ttft == ((0.1, 0), (0.5, 10), (1.0, 0), (None, 1))
    assert quantile(ttft, 0.5) == (round(0.32e9), False)
    assert quantile(ttft, 0.99) == (10**9, True)


pages_told = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 300), st.integers(0, 300), st.integers(0, 300), st.integers(0, 9)),
    min_size=2,
    max_size=8,
)


@tries(8)
@given(pages_told, st.sampled_from([H100, UP_TO]))
def test_whatever_pages_say_tokens_and_time_add_up(tmp_path_factory, moves, setup):
    totals, pages = Counter[str](), []
    for riders, prompt, cached, output, chance in moves:
        if chance == 0 and len(pages) > 1:
            pages.append(FetchError("no answer"))
            continue
        totals.update(p=prompt, c=min(cached, prompt), o=output)
        pages.append(
            page_of(num_requests_running=riders, prompt_tokens_total=totals["p"],
                    prompt_tokens_cached_total=totals["c"], generation_tokens_total=totals["o"])
        )  # fmt: skip
    first = moves[0]
    booked = Booked(tmp_path_factory.mktemp("told"), looks_at(*pages, setup=setup))
    booked.check()
    assert booked.total("prompt_tokens") == totals["p"] - first[1]
    assert booked.total("cached_tokens") == totals["c"] - min(first[1], first[2])
    assert booked.total("output_tokens") == totals["o"] - first[3]
