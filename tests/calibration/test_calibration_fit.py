"""A fit finds the constants behind a recorded run, says which it cannot tell, and is judged on what it has not seen."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from farebox.calibration.least_squares import Evidence
from farebox.calibration.mixing import Mixing
from farebox.calibration.recorded import read_recording
from farebox.calibration.replayed import replay_recorded
from farebox.calibration.unknowns import NAMES, Unknowns
from farebox.calibration.windows import Windows, decode_windows, prompt_windows
from farebox.cli.app import app
from farebox.roofline import Replica, gpu, model
from farebox.roofline.constants import find_constants


@pytest.fixture(scope="module")
def told(recorded_run, tmp_path_factory):
    """What the command prints for programs, and the file in which it keeps the constants."""
    kept = tmp_path_factory.mktemp("kept") / "own.toml"
    run = ["calibrate", "--requests", str(recorded_run.folder / "requests.jsonl"), "--constants", str(kept), "--json"]
    done = CliRunner().invoke(app, run)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), kept


@pytest.fixture(scope="module")
def evidence(kit, recorded_run):
    """What the recording says of a replay with the true constants."""
    folder, replayed = recorded_run.folder, recorded_run.truth
    requests = read_recording(folder / "requests.jsonl", timeseries=folder / "timeseries.csv").requests
    return Evidence(
        unknowns=Unknowns(kit.replica),
        steps=replayed.steps,
        decode_attn=replayed.steps.decode_attn / kit.scales.kv,
        prompt_attn=replayed.steps.prompt_attn / kit.scales.attention,
        decode=decode_windows(requests, replayed),
        prompt=prompt_windows(requests, replayed),
    )


def test_the_terms_of_a_step_sum_to_its_time(kit, recorded_run, evidence):
    steps = recorded_run.truth.steps
    took_ns = steps.ended_ns - steps.started_ns
    took_ns[0] -= kit.cold_ns
    terms = evidence.terms(evidence.unknowns.point(kit.scales))
    assert np.abs(terms.sum(axis=1) / took_ns - 1).max() < 1e-4


@pytest.mark.parametrize("ranks", [1, 2])
def test_so_they_do_where_experts_are_touched_by_and_by_and_ranks_wait_for_each_other(kit, recorded_run, ranks):
    replica = Replica(gpu("rtx_pro_6000"), model("qwen3-30b-a3b"))
    unknowns, arrivals = Unknowns(replica), recorded_run.arrivals[:30]
    logs = unknowns.point(kit.scales)
    replayed = replay_recorded(kit.config(step_model=unknowns.model(logs), cold_start_ns=0), arrivals, ranks)
    steps, none = replayed.steps, Windows(*np.zeros((2, 0), dtype=np.int64), np.zeros(0))
    decode_attn, prompt_attn = steps.decode_attn / kit.scales.kv, steps.prompt_attn / kit.scales.attention
    terms = Evidence(unknowns, steps, decode_attn, prompt_attn, none, none).terms(logs)
    assert np.abs(terms.sum(axis=1) / (steps.ended_ns - steps.started_ns) - 1).max() < 1e-4
    assert len(replayed.served) == 30


def test_with_the_true_constants_nothing_is_left_to_explain(kit, evidence):
    truth = evidence.unknowns.point(kit.scales)
    residuals, slopes = evidence.residuals(truth)
    assert len(evidence.decode.first) == 80
    assert np.abs(residuals[: -len(NAMES)]).max() < 0.05
    size = 1e-6
    for number in range(len(NAMES)):
        moved, _ = evidence.residuals(truth + size * np.eye(len(NAMES))[number])
        assert (moved - residuals) / size == pytest.approx(slopes[:, number], abs=0.05)


def test_the_fit_serves_the_unseen_half_as_it_was_served(told):
    figures, _ = told
    unseen, run = figures["errors"]["held_out"], figures["errors"]["run"]
    assert unseen["requests"] == 40
    assert abs(unseen["tpot"]["mean"]) < 0.01
    assert abs(unseen["ttft"]["mean"]) < 0.02
    assert abs(run["makespan"]) < 0.01
    assert run["running"] < 0.03


def test_it_finds_the_rates_back_that_a_run_tells(kit, told):
    figures, _ = told
    true = kit.scales.apply(Unknowns(kit.replica).base, 32)
    found = {one["name"]: one for one in figures["constants"]}
    assert found["row"]["is_told"]
    assert found["row"]["ns"] == pytest.approx(true.row / 2**20, rel=0.05)
    assert figures["cold_start_ns"] == pytest.approx(kit.cold_ns, rel=0.05)
    decode, prompts = figures["step_times"]
    assert decode["width"] < 0.02
    assert prompts["width"] < 0.05


def test_it_says_what_a_run_does_not_tell(told):
    figures, _ = told
    found = {one["name"]: one for one in figures["constants"]}
    assert not found["overhead"]["is_told"]
    assert found["overhead"]["high_ns"] > 2 * found["overhead"]["low_ns"]
    assert figures["entangled"]


def test_the_constants_are_kept_with_their_origin_and_used(kit, told):
    figures, file = told
    kept = find_constants("rtx_4090", file)
    assert kept.scales.row == pytest.approx(figures["scales"]["row"], rel=1e-3)
    assert "40 requests" in str(kept.origin)
    found = replace(kit.replica, constants=kept).step_model()
    assert found.row == pytest.approx(kit.replica.step_model().row * figures["scales"]["row"], rel=1e-3)
    assert found.prompt > 0


def test_mixing_ends_the_swinging_of_a_map_that_turns_back():
    centre = np.full(len(NAMES), 0.7)
    point, mixing = np.zeros(len(NAMES)), Mixing()
    for _ in range(6):
        point = mixing.next(point, centre - 1.1 * (point - centre))
    assert np.abs(point - centre).max() < 1e-3


def test_a_replay_with_the_truth_is_the_recording(kit, recorded_run):
    assert replay_recorded(kit.config(), recorded_run.arrivals).served == recorded_run.truth.served


@pytest.mark.parametrize(
    ("given", "complaint"), [([], "name either"), (["--fit-requests", "80"], "fit needs at least")]
)
def test_what_cannot_be_fitted_is_said(recorded_run, given, complaint):
    requests = ["--requests", str(recorded_run.folder / "requests.jsonl")] if given else []
    done = CliRunner().invoke(app, ["calibrate", *requests, *given])
    assert done.exit_code == 2
    assert complaint in str(done.exception) + done.output
