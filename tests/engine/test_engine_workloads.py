"""Workloads: traces are read exactly or refused with file and line; made-up traffic is the same for the same seed."""

from fractions import Fraction
from itertools import islice, takewhile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farebox.engine.workloads import azure, demo, mooncake, synthetic
from farebox.engine.workloads.errors import WorkloadError
from farebox.engine.workloads.merge import densify, merge, peek
from farebox.engine.workloads.tenant import tenant_of

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
T0 = 1_700_158_546_000_000_000  # 2023-11-16 18:15:46 UTC
S = 1_000_000_000


def written(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def azure_file(tmp_path: Path, *rows: str, header: str = HEADER, newline: str = "\n") -> Path:
    return written(tmp_path, "trace.csv", newline.join((header, *rows)))


@pytest.mark.parametrize(
    "stamp, ns",
    [
        ("2023-11-16 18:15:46.6805900", T0 + 680_590_000),
        ("2023-11-16 18:15:46.680590001", T0 + 680_590_001),
        ("2023-11-16 18:15:46", T0),
        ("2023-11-16T18:15:46.5Z", T0 + 500_000_000),
        ("2023-11-16 18:15:46.009930+00:00", T0 + 9_930_000),
    ],
)
def test_azure_timestamps_are_exact(tmp_path, stamp, ns):
    (arrival,) = azure.read(azure_file(tmp_path, f"{stamp},374,44"), "code")
    assert arrival == ("code-1", "code", "standard", ns, 374, 44, None, None, None, None)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_azure_files_as_they_come(tmp_path, newline, bom, end):
    rows = ["2023-11-16 18:15:46.0000000,10,1", "2023-11-16 18:15:47.0000000,20,0"]
    text = bom + newline.join([HEADER, *rows]) + end.replace("\n", newline)
    arrivals = list(azure.read(written(tmp_path, "trace.csv", text), "t"))
    assert [(a.arrived_ns - T0, a.prompt_tokens, a.output_tokens) for a in arrivals] == [(0, 10, 1), (S, 20, 0)]


def test_azure_rows_out_of_order_are_put_in_order_and_keep_their_number(tmp_path):
    rows = [f"2023-11-16 18:15:{second},1,1" for second in (48, 46, 47, 46)]
    arrivals = list(azure.read(azure_file(tmp_path, *rows), "t"))
    assert [(a.request_id, (a.arrived_ns - T0) // S) for a in arrivals] == [
        ("t-2", 0),
        ("t-4", 0),
        ("t-3", 1),
        ("t-1", 2),
    ]


@pytest.mark.parametrize(
    "row, message",
    [
        ("2023-11-16 18:15:46,12x,5", 'trace.csv:3: ContextTokens "12x" is not a whole number'),
        ("2023-11-16 18:15:46,12,-5", 'trace.csv:3: GeneratedTokens "-5" is not a whole number'),
        ("2023-11-16 18:15:46,1.5,5", 'trace.csv:3: ContextTokens "1.5" is not a whole number'),
        ("2023-11-16 18:15:46,²,5", 'trace.csv:3: ContextTokens "²" is not a whole number'),
        ("2023-11-16 18:15:46,,5", 'trace.csv:3: ContextTokens "" is not a whole number'),
        ("2023-11-16 18:15:46,0,5", "trace.csv:3: ContextTokens is 0; it must be at least 1"),
        ("2023-11-16 18:15:46,5", "trace.csv:3: 2 columns instead of 3"),
        ("yesterday,5,5", 'trace.csv:3: TIMESTAMP "yesterday" is not a time like 2023-11-16 18:15:46.6805900'),
        ("2023-02-30 18:15:46,5,5", 'trace.csv:3: TIMESTAMP "2023-02-30 18:15:46" is not a time'),
        ("2023-11-16 18:15:46+01:00,5,5", 'trace.csv:3: TIMESTAMP "2023-11-16 18:15:46+01:00" is not a time like'),
    ],
)
def test_a_bad_azure_row_is_named_before_anything_comes_out(tmp_path, row, message):
    path = azure_file(tmp_path, "2023-11-16 18:15:46,374,44", row)
    with pytest.raises(WorkloadError) as caught:
        azure.read(path, "t")
    assert message in str(caught.value)
    assert (caught.value.path, caught.value.line) == (path, 3)


def test_a_wrong_header_tells_what_was_found_and_what_is_expected(tmp_path):
    with pytest.raises(
        WorkloadError, match=r"trace\.csv:1: columns 'time, in, out' found, 'TIMESTAMP, ContextTokens, "
    ):
        azure.read(azure_file(tmp_path, header="time,in,out"), "t")
    with pytest.raises(WorkloadError, match="expected"):
        azure.read(written(tmp_path, "empty.csv", ""), "t")
    with pytest.raises(WorkloadError, match="not a UTF-8 text file"):
        azure.read(written(tmp_path, "binary.csv", b"\xff\xfe\x00"), "t")


def test_a_header_alone_is_an_empty_workload(tmp_path):
    assert list(azure.read(azure_file(tmp_path), "t")) == []


def test_mooncake_lines(tmp_path):
    lines = [
        '{"timestamp": 27, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 14]}',
        '{"timestamp": 5, "input_length": 1, "output_length": 0}',
    ]
    path = written(tmp_path, "trace.jsonl", "\r\n".join(lines))
    first, second = mooncake.read(path, "m", start_ns=T0)
    assert first == ("m-2", "m", "standard", T0 + 5_000_000, 1, 0, None, None, None, None)
    assert second == ("m-1", "m", "standard", T0 + 27_000_000, 6758, 500, None, (0, 1, 14), None, None)


@pytest.mark.parametrize(
    "line, message",
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"timestamp": 0, "input_length": 5}', "output_length is missing"),
        ('{"timestamp": 0.5, "input_length": 5, "output_length": 1}', "timestamp 0.5 is not a whole number"),
        ('{"timestamp": true, "input_length": 5, "output_length": 1}', "timestamp true is not a whole number"),
        ('{"timestamp": 0, "input_length": 0, "output_length": 1}', "input_length is 0; it must be at least 1"),
        ('{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": ["a"]}', "hash_ids is not a list"),
    ],
)
def test_a_bad_mooncake_line_is_named(tmp_path, line, message):
    good = '{"timestamp": 0, "input_length": 6758, "output_length": 500}'
    with pytest.raises(WorkloadError) as caught:
        mooncake.read(written(tmp_path, "trace.jsonl", f"{good}\n{line}\n"))
    assert f"trace.jsonl:2: {message}" in str(caught.value)


@pytest.mark.parametrize(
    "name, requests, prompt, output",
    [("code", 8_819, 18_059_974, 245_896), ("conv", 19_366, 22_361_870, 4_088_665)],
)
def test_the_recorded_azure_traces(shared, name, requests, prompt, output):
    arrivals = list(azure.read(shared / "data" / "traces" / f"AzureLLMInferenceTrace_{name}.csv", name))
    assert len(arrivals) == requests
    assert sum(a.prompt_tokens for a in arrivals) == prompt
    assert sum(a.output_tokens for a in arrivals) == output


def test_the_recorded_mooncake_trace(shared):
    arrivals = list(mooncake.read(shared / "data" / "traces" / "mooncake_conversation_trace.jsonl"))
    assert len(arrivals) == 12_031
    assert arrivals[0].prefix_ids == tuple(range(14))


@pytest.mark.parametrize(
    "path, tenant",
    [
        ("traces/AzureLLMInferenceTrace_conv.csv", "conv"),
        ("AzureLLMInferenceTrace_code.csv", "code"),
        ("team-a.2024.csv", "2024"),
        ("überblick.csv", "überblick"),
        ("___.csv", "___"),
    ],
)
def test_the_tenant_is_the_last_word_of_the_files_name(path, tenant):
    assert tenant_of(path) == tenant


def test_merge_is_stable_and_peek_takes_nothing_away(kit):
    left = [kit.arrival(n, at_ms=n, tenant="l") for n in (0, 2, 2)]
    right = [kit.arrival(n, at_ms=n, tenant="r") for n in (1, 2)]
    merged = list(merge(left, iter(right)))
    assert [a.tenant_id for a in merged] == ["l", "r", "l", "l", "r"]
    first, stream = peek(merged)
    assert first == merged[0] and list(stream) == merged
    assert peek([])[0] is None


@given(st.lists(st.integers(0, 10**15), min_size=1).map(sorted), st.fractions(Fraction(1, 50), 1000))
def test_densify_divides_offsets_exactly(kit, offsets, load):
    arrivals = [
        kit.arrival(n)._replace(arrived_ns=kit.start_ns + at, abort_ns=kit.start_ns + at + 7)
        for n, at in enumerate(offsets)
    ]
    dense = list(densify(arrivals, load))
    for before, after in zip(arrivals, dense, strict=True):
        offset = Fraction(before.arrived_ns - arrivals[0].arrived_ns) / load
        assert after.arrived_ns - arrivals[0].arrived_ns == offset.__floor__()
        assert after.abort_ns == after.arrived_ns + 7
        assert after._replace(arrived_ns=0, abort_ns=0) == before._replace(arrived_ns=0, abort_ns=0)


def test_densify_needs_a_load_above_zero(kit):
    with pytest.raises(ValueError, match="load is 0"):
        densify([kit.arrival(1)], 0)


def test_synthetic_traffic_is_a_mix_of_three_and_follows_its_seed():
    arrivals = list(synthetic.generate(seed=7, start_ns=T0))
    assert len(arrivals) == 2_000
    assert arrivals == list(synthetic.generate(seed=7, start_ns=T0))
    assert arrivals != list(synthetic.generate(seed=8, start_ns=T0))
    assert [a.arrived_ns for a in arrivals] == sorted(a.arrived_ns for a in arrivals)
    assert len({a.request_id for a in arrivals}) == 2_000
    mean = {}
    for tenant in ("chat", "code", "summariser"):
        mine = [a for a in arrivals if a.tenant_id == tenant]
        assert len(mine) > 200
        mean[tenant] = (sum(a.prompt_tokens for a in mine) / len(mine), sum(a.output_tokens for a in mine) / len(mine))
    assert mean["chat"][0] < mean["code"][0] < mean["summariser"][0]
    assert mean["code"][1] < mean["chat"][1]


def test_the_demo_fills_the_bus_empties_it_and_goes_on(kit):
    minutes = 4
    end_ns = T0 + minutes * 60 * S
    arrivals = list(takewhile(lambda a: a.arrived_ns < end_ns, demo.generate(T0)))
    assert list(islice(demo.generate(T0), len(arrivals))) == arrivals
    tape = kit.serve(kit.config(max_num_seqs=64, max_num_batched_tokens=8192, kv_blocks=26_000), arrivals)
    tenants = {"support-chat", "code-completion", "nightly-summariser", "voice"}
    assert {r.tenant_id for r in tape.requests} == tenants
    assert {r.tier for r in tape.requests} == {"fast", "standard", "batch"}
    busy_ns = sum(s.duration_ns for s in tape.steps)
    full = sum(s.duration_ns for s in tape.steps if s.running >= 60) / busy_ns
    few = sum(s.duration_ns for s in tape.steps if s.running <= 15) / busy_ns
    assert full > 0.1 and few > 0.1
    assert sum(s.idle_before_ns > 100_000_000 for s in tape.steps) > 2
    abandoned = sum(r.finish_reason == "abort" for r in tape.requests) / len(tape.requests)
    assert 0.005 < abandoned < 0.08
