"""Names people type, replicas that fit, and step times near what kernels measure."""

import csv
import json
import statistics
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farebox.roofline import UNITS_PER_NS, Replica, SpecError, StepModel, gpu, gpu_names, model, model_names

MIXTRAL = model("mixtral-8x7b")


@pytest.mark.parametrize("name", ["h100", "H100_SXM", "h100-sxm", "NVIDIA H100 80GB HBM3", "H100 SXM5 80GB"])
def test_gpu_names_are_forgiving(name: str):
    assert gpu(name).name == "h100_sxm"


@pytest.mark.parametrize("name", ["llama-3-8b", "Llama-3-8B", "meta-llama/Llama-3.1-8B", "llama3-8b"])
def test_model_names_are_forgiving(name: str):
    assert model(name).name == "llama-3-8b"


def test_every_canonical_name_finds_itself():
    assert [gpu(name).name for name in gpu_names()] == gpu_names()
    assert [model(name).name for name in model_names()] == model_names()


def test_an_unknown_name_offers_near_ones():
    with pytest.raises(SpecError, match=r'unknown GPU "h1000".*h100_sxm'):
        gpu("h1000")
    with pytest.raises(SpecError, match=r'unknown model "lama-3-8b".*llama-3-8b'):
        model("lama-3-8b")


@pytest.mark.parametrize(
    ("name", "billions", "kv_bytes"),
    [("llama-2-7b", 6.74, 524_288), ("llama-3-8b", 8.03, 131_072), ("llama-3-70b", 70.55, 327_680)],
)
def test_model_sizes_are_the_published_ones(name: str, billions: float, kv_bytes: int):
    spec = model(name)
    assert spec.params / 1e9 == pytest.approx(billions, abs=0.01)
    assert spec.kv_bytes == kv_bytes


def test_a_step_of_too_many_rows_is_to_blame_where_the_weights_fit():
    with pytest.raises(SpecError, match=r"10000000 rows in a step take 327\.7 GB .* have 55\.9 GB left .*fewer rows"):
        Replica(gpu("h100"), model("llama-3-8b")).kv_blocks(16, 10_000_000)


def test_a_model_that_does_not_fit_says_what_would():
    with pytest.raises(SpecError, match=r"llama-3-70b does not fit: .*141\.1 GB.*1×H100 SXM offer 72\.0 GB.*--tp 4"):
        Replica(gpu("h100"), model("llama-3-70b")).kv_blocks()
    assert Replica(gpu("h100"), model("llama-3-70b"), tp=4).kv_blocks() > 1000


def test_nonsense_replicas_are_refused():
    with pytest.raises(SpecError, match="at least one GPU"):
        Replica(gpu("h100"), model("llama-3-8b"), tp=0)
    with pytest.raises(SpecError, match="do not split evenly"):
        Replica(gpu("h100"), model("llama-3-8b"), tp=3)
    with pytest.raises(SpecError, match='unknown weight format "fp16x"'):
        Replica(gpu("h100"), model("llama-3-8b"), weights="fp16x")


def test_smaller_weights_stream_faster_and_leave_room_for_kv():
    bf16, int4 = (Replica(gpu("h100"), model("llama-3-8b"), weights=w) for w in ("bf16", "int4"))
    assert int4.step_model().weights < 0.4 * bf16.step_model().weights
    assert int4.kv_blocks() > bf16.kv_blocks()


def test_two_gpus_halve_the_stream_and_pay_for_talking():
    one, two = (Replica(gpu("h100"), model("llama-3-8b"), tp=tp).step_model() for tp in (1, 2))
    assert abs(two.weights - one.weights / 2) <= 1
    assert two.row_comm > one.row_comm > 0
    assert two.overhead > one.overhead


@pytest.mark.parametrize("replica", [Replica(gpu("h200"), model("llama-3-70b"), tp=4), Replica(gpu("h200"), MIXTRAL)])
def test_constants_survive_their_json(replica: Replica):
    constants = replica.step_model()
    assert StepModel.from_json(constants.to_json()) == constants
    values = json.loads(constants.to_json())
    numbers = chain(*values.pop("streams", ()), *values.pop("ridge", ()), values.values())
    assert all(isinstance(value, int) for value in numbers)


def test_constants_of_older_runs_still_read():
    old = '{"overhead":5,"weights":100,"row":3,"row_comm":1,"kv_token":2,"attn_pair":1,'
    old += '"weight_bytes":7,"kv_token_bytes":8,"flops_row":9,"flops_pair":10}'
    constants = StepModel.from_json(old)
    assert [constants.linear(rows) for rows in (1, 33, 40)] == [101, 133, 160]
    assert constants.to_json() == old


@given(rows=st.integers(1, 8192), cut=st.integers(0, 8192), context=st.integers(0, 100_000))
def test_attention_pairs_add_up_over_chunks(rows: int, cut: int, context: int):
    from farebox.roofline import pairs

    first = min(cut, rows)
    assert pairs(first, context) + pairs(rows - first, context + first) == pairs(rows, context)


@pytest.mark.parametrize(
    ("name", "weights", "decode_limit", "prefill_limit"),
    [
        ("h100_sxm", "bf16", 0.045, 0.09),
        ("h200_sxm", "bf16", 0.035, 0.09),
        ("h100_sxm", "fp8", 0.05, 0.09),
        ("a100_sxm", "bf16", 0.065, 0.10),
        ("b200_sxm", "bf16", 0.075, 0.09),
    ],
)
def test_step_times_agree_with_measured_kernels(
    shared, name: str, weights: str, decode_limit: float, prefill_limit: float
):
    errors: dict[str, list[float]] = {"decode": [], "prefill": []}
    with (shared / "data" / "timings" / "measured_steps.csv").open() as lines:
        for row in csv.DictReader(lines):
            if (row["gpu"], row["weights"]) != (name, weights):
                continue
            constants = Replica(gpu(name), model(row["model"]), weights=weights, tp=int(row["tp"])).step_model()
            batch, tokens, context = int(row["batch_size"]), int(row["tokens"]), int(row["kv_len"])
            each = tokens // batch
            attention = batch * constants.attention(each, context - each)
            predicted_ms = constants.step(tokens, attention) / UNITS_PER_NS / 1e6
            errors[row["phase"]].append(abs(predicted_ms / float(row["measured_ms"]) - 1))
    assert statistics.mean(errors["decode"]) <= decode_limit
    assert statistics.mean(errors["prefill"]) <= prefill_limit
