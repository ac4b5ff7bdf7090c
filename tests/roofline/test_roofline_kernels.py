"""Predicted steps: parts that add up, and more work that never takes less time."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.roofline import UNITS_PER_NS, Replica, StepModel, gpu, model
from farebox.roofline.configuration import Configuration
from farebox.roofline.constants import UNCALIBRATED, shipped_constants
from farebox.roofline.prediction import kernel_times, step_parts
from farebox.roofline.step_model import stream_lines
from farebox.roofline.work import Work

GPUS = ("a100", "h100", "h200", "b200", "l40s", "l4")
replicas = st.builds(
    Replica,
    st.sampled_from(GPUS).map(gpu),
    st.sampled_from(("llama-2-7b", "llama-3-8b", "llama-3-70b", "mixtral-8x7b", "deepseek-v3")).map(model),
    st.sampled_from(("bf16", "fp8", "int8", "int4")),
    st.sampled_from((1, 2, 4, 8)),
)


def without_few_rows(replica: Replica) -> Replica:
    """The same replica, but starting a matrix product takes as long for one row as for many."""
    constants = replica.origin_constants
    matrices = {name: replace(rates, single_us=0.0) for name, rates in constants.kernels.matrices.items()}
    return replace(replica, constants=replace(constants, kernels=replace(constants.kernels, matrices=matrices)))


def without_cache(replica: Replica) -> Replica:
    """The same replica, but KV is always read from memory."""
    constants = replica.origin_constants
    cold = replace(constants.kernels, decode=replace(constants.kernels.decode, cache_mb=0.0))
    return replace(replica, constants=replace(constants, kernels=cold))


FEW = tries(40)
batches, contexts = st.integers(1, 512), st.integers(1, 32_768)


@FEW
@given(replicas, batches, contexts, st.booleans())
def test_parts_are_positive_and_sum_to_the_kernels(replica, batch, context, decodes):
    work = Work.decode(batch, context) if decodes else Work.prefill(batch, context)
    parts = step_parts(replica, work)
    assert min(parts.weights_ms, parts.kv_ms, parts.overhead_ms, parts.allreduce_ms) >= 0
    assert parts.compute_ms > -1e-6 * parts.total_ms
    assert parts.total_ms == pytest.approx(kernel_times(replica, work).total * 1e3)
    assert (parts.allreduce_ms > 0) == (replica.tp > 1)


@FEW
@given(replicas, batches, contexts, st.integers(1, 4096))
def test_more_riders_longer_contexts_and_larger_prompts_take_no_less(replica, batch, context, more):
    """Apart from what starting kernels takes longer for a few rows than for many."""
    replica = without_few_rows(replica)

    def decode(n: int, tokens: int) -> float:
        return kernel_times(replica, Work.decode(n, tokens)).total

    def prefill(rows: int, behind: int) -> float:
        return kernel_times(replica, Work.prefill(1, rows, behind)).total

    assert decode(batch, context) <= decode(batch, context + more)
    assert decode(batch, context) <= decode(batch + 1, context) * 1.0001
    assert prefill(batch, context) <= prefill(batch, context + more)
    assert prefill(batch, context) <= prefill(batch + 1, context) * 1.0001


@FEW
@given(replicas)
def test_a_decode_of_one_reads_its_weights_no_faster_than_the_datasheet_says(replica):
    peak_ms = replica.model.streamed_bytes(replica.weights) / replica.tp / replica.gpu.bandwidth * 1e3
    parts = step_parts(replica, Work.decode(1, 1024))
    if replica.model.experts is None:
        assert parts.weights_ms > peak_ms


def test_one_row_takes_longer_to_start_than_sixteen_in_fp8_on_a_b200():
    """As measured on Llama-3-8B: 4.0 ms of matrix products for one row, 2.1 to 3.0 for 2 to 64."""
    linear = [
        kernel_times(Replica(gpu("b200"), model("llama-3-8b"), "fp8"), Work.decode(rows, 1024)).linear * 1e3
        for rows in (1, 2, 16, 64)
    ]
    assert linear[0] == pytest.approx(3.97, rel=0.1)
    assert all(2.0 < ms < 3.0 for ms in linear[1:])
    parts = step_parts(Replica(gpu("b200"), model("llama-3-8b"), "fp8"), Work.decode(1, 1024))
    assert parts.overhead_ms > parts.total_ms / 2


@pytest.mark.parametrize("name", GPUS)
def test_a_larger_message_and_more_gpus_make_no_faster_all_reduce(name):
    reduce = shipped_constants(gpu(name).name).kernels.reduce
    sizes = np.geomspace(1e3, 1e9, 400)
    times = np.stack([reduce.time(sizes, tp) for tp in (2, 4, 8)])
    assert (np.diff(times, axis=1) >= 0).all()
    assert (np.diff(times, axis=0) >= 0).all()
    assert reduce.time(1e6, 1) == 0


@pytest.mark.parametrize(
    ("kib", "measured_us"),
    [(4, (3.9, 3.7, 5.7)), (512, (12.5, 20.2, 22.1)), (1024, (19.9, 31.1, 33.8))],
)
def test_two_and_eight_gpus_reduce_as_measured_though_fitted_to_four(kib, measured_us):
    """SGLang's custom all-reduce on H100s with 2, 4 and 8 GPUs, as its pull request 2904 reports it: the ratios."""
    reduce = shipped_constants("h100_sxm").kernels.reduce
    two, four, eight = (reduce.time(kib * 1024, tp) for tp in (2, 4, 8))
    assert two / four == pytest.approx(measured_us[0] / measured_us[1], rel=0.1)
    assert eight / four == pytest.approx(measured_us[2] / measured_us[1], rel=0.4 if kib < 64 else 0.1)


def test_a_chunk_reads_what_stands_before_it():
    whole, chunk = Work.prefill(2, 512), Work.prefill(2, 512, behind=1024)
    assert chunk.prompt_pairs - whole.prompt_pairs == 2 * 512 * 1024
    replica = Replica(gpu("h100"), model("llama-3-8b"))
    assert Configuration.of(replica, "prefill", 2, 1024, 1536).work == chunk


def test_a_gpu_that_nobody_measured_says_so():
    assert str(Replica(gpu("l4"), model("llama-3-8b")).origin_constants.origin) == UNCALIBRATED
    assert Replica(gpu("h100"), model("llama-3-8b")).origin_constants.origin.is_calibrated


@FEW
@given(replicas, st.integers(1, 8192), st.integers(1, 8192))
def test_a_crowd_shares_no_more_than_its_groups_would_take_alone(replica, few, more):
    """L(M)/M never rises: the property that keeps roofline shares in the core."""
    constants = replica.step_model()
    many = few + more
    assert constants.linear(many) * few <= constants.linear(few) * many
    assert constants.linear(few) <= constants.linear(many)


lines = st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**30)), max_size=3).map(tuple)
any_model = st.builds(
    StepModel,
    *(st.integers(0, 2**42) for _ in range(2)),
    *(st.integers(0, 2**34) for _ in range(2)),
    *(st.just(1) for _ in range(6)),
    lines,
    lines,
)


@given(any_model, st.integers(1, 10_000), st.integers(1, 10_000))
def test_any_lines_with_bases_that_are_not_negative_keep_the_core(constants, few, more):
    assert constants.linear(few + more) * few <= constants.linear(few) * (few + more)


@given(any_model, st.lists(st.integers(0, 10_000), max_size=5))
def test_columns_of_rows_are_timed_as_single_ones(constants, rows):
    assert constants.linear_column(np.array(rows, np.int64)).tolist() == [constants.linear(n) for n in rows]


@given(any_model)
def test_memory_rows_are_the_last_that_only_stream(constants):
    if constants.streams:
        return
    last = constants.memory_rows
    shared = [constants.linear(rows) - constants.row_comm * rows for rows in (last, last + 1)]
    if last:
        assert shared[0] == constants.weights
    if constants.row and constants.weights >= max((base for base, _ in constants.ridge), default=0):
        assert shared[1] > constants.weights


@given(st.integers(1, 2**40), st.integers(0, 2**40), st.integers(2, 64))
def test_lines_through_a_concave_stream_meet_its_points(dense, experts, number):
    points = [(m, dense + round(experts * (1 - (1 - 1 / number) ** m))) for m in (1, 2, 4, 8, 16)]
    drawn = stream_lines(points)
    assert all(base >= 0 for base, _ in drawn)
    for rows, units in points:
        assert min(base + slope * rows for base, slope in drawn) == pytest.approx(units, abs=16 + 1e-9 * units)


@FEW
@given(
    st.sampled_from(GPUS).map(gpu),
    st.sampled_from(("llama-2-7b", "llama-3-70b", "mixtral-8x7b", "qwen3-30b-a3b")).map(model),
    st.sampled_from(("bf16", "fp8")),
    st.sampled_from((1, 2, 4)),
    st.sampled_from((1, 4, 16, 64, 256)),
    st.sampled_from((1024, 2048, 4096)),
)
def test_an_engine_counts_a_step_nearly_as_long_as_its_kernels_take(device, spec, weights, tp, batch, context):
    """It reads all KV from memory, and starts kernels in the same time for any number of rows."""
    replica = without_cache(without_few_rows(Replica(device, spec, weights, tp)))
    constants = replica.step_model()
    engine_s = constants.step(batch, batch * constants.attention(1, context - 1)) / UNITS_PER_NS / 1e9
    assert engine_s == pytest.approx(kernel_times(replica, Work.decode(batch, context)).total, rel=0.25)
