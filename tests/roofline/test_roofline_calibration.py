"""Fits that find the constants back, say what they cannot know, and predict what they have not seen."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from farebox.roofline import Replica, SpecError, gpu, model
from farebox.roofline.calibration.fit import fit
from farebox.roofline.calibration.held_out import cross_check, errors
from farebox.roofline.calibration.least_squares import solve
from farebox.roofline.calibration.table import PART_COLUMNS, read_table
from farebox.roofline.calibration.timings import Timing
from farebox.roofline.configuration import REQUIRED
from farebox.roofline.constants import (
    Constants,
    Origin,
    find_constants,
    read_constants,
    shipped_constants,
    user_file,
    write_constants,
)
from farebox.roofline.prediction import kernel_times
from farebox.roofline.work import Work

TRUE = shipped_constants("a100_sxm").kernels
ONE, FOUR = (Replica(gpu("l4"), model(name), tp=tp) for name, tp in (("llama-3-8b", 1), ("llama-3-70b", 4)))


def measured(replica: Replica, kernels=TRUE, parts: bool = True, noise: float = 0.0) -> list[Timing]:
    """Steps as a GPU with these constants takes them."""
    random = np.random.default_rng(7)
    works = [("decode", Work.decode(n, c)) for n in (1, 4, 16, 64, 256) for c in (128, 1024, 8192)]
    works += [("prefill", Work.prefill(n, rows)) for n, rows in ((1, 128), (1, 1024), (1, 4096), (4, 512), (8, 1024))]
    timed = replace(replica, constants=Constants(kernels, Origin("true")))
    found = []
    for phase, work in works:
        factor = 1 + noise * random.standard_normal()
        times = [1e3 * float(part) * factor for part in kernel_times(timed, work)]
        found.append(Timing(replica, work, phase, sum(times), tuple(times[:5]) if parts else None))
    return found


@pytest.fixture(scope="module")
def fitted():
    return fit([*measured(ONE), *measured(FOUR)])


def test_a_fit_to_kernels_finds_their_constants_back(fitted):
    assert max(error.mean for error in errors([*measured(ONE), *measured(FOUR)], fitted.kernels)) < 1.5
    rates, true = fitted.kernels.rates("bf16"), TRUE.rates("bf16")
    assert rates.bandwidth == pytest.approx(true.bandwidth, rel=0.05)
    assert rates.compute == pytest.approx(true.compute, rel=0.05)
    assert fitted.kernels.decode.bandwidth == pytest.approx(TRUE.decode.bandwidth, rel=0.1)
    assert fitted.kernels.reduce.ring_gbps == pytest.approx(TRUE.reduce.ring_gbps, rel=0.1)


def test_it_predicts_a_model_and_a_tp_that_it_has_not_seen(fitted):
    other = Replica(gpu("l4"), model("llama-2-13b"), tp=8)
    assert max(error.mean for error in errors(measured(other), fitted.kernels)) < 5


def test_whole_steps_tell_rates_but_not_what_they_never_do():
    """One GPU, whole steps, 1 % noise: bandwidth is found; an all-reduce never happened."""
    faster = replace(TRUE, matrices={"bf16": replace(TRUE.rates("bf16"), bandwidth=0.65)}, step_us=900.0)
    found = fit(measured(ONE, faster, parts=False, noise=0.01), base=TRUE)
    widths = {width.name: width for width in found.widths}
    assert widths["matrices.bf16.bandwidth"].value == pytest.approx(0.65, rel=0.05)
    assert widths["matrices.bf16.bandwidth"].is_fixed
    assert "step_us" in widths
    assert not any(width.is_fixed for name, width in widths.items() if name.startswith("reduce."))
    assert widths["reduce.ring_gbps"].value == pytest.approx(TRUE.reduce.ring_gbps)
    assert max(error.mean for error in errors(measured(ONE, faster, parts=False), found.kernels)) < 2


def test_steps_of_two_gpu_types_are_no_fit():
    with pytest.raises(SpecError, match="one GPU type"):
        fit([*measured(ONE), *measured(replace(ONE, gpu=gpu("h100")))])


def test_parts_left_out_are_predicted_without_having_been_seen():
    unseen = cross_check(measured(ONE, noise=0.02), "batch", TRUE)
    assert [(error.phase, error.steps) for error in unseen] == [("decode", 15), ("prefill", 5)]
    assert 0.5 < max(error.mean for error in unseen) < 8
    assert cross_check(measured(ONE), "model") == []


def test_an_outlier_moves_a_fit_little():
    x = np.linspace(0, 1, 20)
    y = 2 * x + 1
    y[3] += 50
    found = solve(lambda v: (v[0] * x + v[1] - y) / 0.1, lambda v: v / 1e3, np.array([0.0, 0.0]))
    assert found.vector == pytest.approx([2, 1], abs=0.2)
    assert found.deviations == pytest.approx([0.07, 0.04], abs=0.05)


def test_constants_keep_their_origin_in_a_file_beside_others(tmp_path):
    file = tmp_path / "deep" / "own.toml"
    for name in ("h100_sxm", "l4"):
        origin = Origin(f'fitted to 9 steps of "{name}"\n', "2026-02-03", 9, "bf16 decode 3.0 %, p90 6.0 %")
        write_constants(file, name, Constants(shipped_constants("h100_sxm").kernels, origin))
    known = read_constants(file)
    assert sorted(known) == ["h100_sxm", "l4"]
    assert known["l4"].origin.steps == 9
    assert str(known["l4"].origin) == f'{file}: fitted to 9 steps of "l4" , 2026-02-03'
    assert known["l4"].kernels == shipped_constants("h100_sxm").kernels
    with pytest.raises(SpecError, match=r"no constants for a100_sxm, only for h100_sxm, l4"):
        find_constants("a100_sxm", file)


def test_a_users_own_constants_are_found_before_the_shipped_ones(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert find_constants("h100_sxm") == shipped_constants("h100_sxm")
    mine = Constants(TRUE, Origin("mine"))
    write_constants(user_file(), "h100_sxm", mine)
    assert find_constants("h100_sxm").kernels == TRUE
    assert str(tmp_path) in str(find_constants("h100_sxm").origin)
    assert find_constants("a100_sxm") == shipped_constants("a100_sxm")
    user_file().write_text("[h100_sxm]\nstep_us = 3\n")
    with pytest.raises(SpecError, match="holds no constants that can be read"):
        find_constants("h100_sxm")


def test_a_table_keeps_good_rows_and_names_bad_ones():
    head = ",".join((*REQUIRED, "measured_ms", *PART_COLUMNS))
    good = "h100,llama-3-8b,bf16,1,decode,4,4,512,6.5"
    rows = [
        f"{good},5,1,0,0.4,0.1",
        f"{good},5,1,0,0.4,",
        "h100,llama-3-8b,bf16,1,decode,4,4,512,,,,,,",
        "h100,llama-3-8b,bf16,1,prefill,1,4,2,1.5,,,,,",
        "h100,llama-3-8b,bf16,3,decode,4,4,512,6.5,,,,,",
        "h100,llama-3-8b,bf16,1,decode,4,x,512,6.5,,,,,",
    ]
    table = read_table([head, *rows], "t.csv")
    assert [timing.parts for timing in table.timings] == [(5, 1, 0, 0.4, 0.1), None]
    assert [problem.split(": ")[0] for problem in table.problems] == ["t.csv:4", "t.csv:5", "t.csv:6", "t.csv:7"]
    assert "tokens is" in table.problems[-1]
    with pytest.raises(SpecError, match="no column measured_ms"):
        read_table([",".join(REQUIRED), good], "t.csv")


LIMITS = {
    ("h100_sxm", "bf16"): (0.035, 0.03),
    ("h100_sxm", "fp8"): (0.03, 0.03),
    ("h200_sxm", "bf16"): (0.03, 0.03),
    ("h200_sxm", "fp8"): (0.03, 0.03),
    ("a100_sxm", "bf16"): (0.04, 0.03),
    ("b200_sxm", "bf16"): (0.035, 0.03),
    ("b200_sxm", "fp8"): (0.07, 0.03),
    ("l40s", "bf16"): (0.03, 0.03),
    ("l40s", "fp8"): (0.03, 0.03),
}


def test_shipped_constants_agree_with_measured_kernels(shared):
    off: dict[tuple[str, str], dict[str, list[float]]] = {}
    with (shared / "data" / "timings" / "measured_steps.csv").open() as lines:
        for timing in read_table(lines, "measured_steps.csv").timings:
            ours = off.setdefault((timing.replica.gpu.name, timing.replica.weights), {"decode": [], "prefill": []})
            predicted = kernel_times(timing.replica, timing.work).total * 1e3
            ours[timing.phase].append(abs(predicted / timing.measured_ms - 1))
    for key, (decode, prefill) in LIMITS.items():
        assert (np.mean(off[key]["decode"]) < decode, np.mean(off[key]["prefill"]) < prefill) == (True, True), key


def test_a_tp_left_out_is_predicted_within_the_target(shared):
    """A100: 70B on four GPUs from 8B and 7B on one, and the other way around."""
    with (shared / "data" / "timings" / "measured_steps.csv").open() as lines:
        rows = [row for row in csv.reader(lines) if row[0] in ("gpu", "a100_sxm")]
    timings = read_table([",".join(row) for row in rows], "a100").timings
    unseen = {(error.weights, error.phase): error.mean for error in cross_check(timings, "tp")}
    assert unseen["bf16", "decode"] < 6.5
    assert unseen["bf16", "prefill"] < 10
