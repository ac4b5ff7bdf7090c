"""`farebox step` and `farebox calibrate`, from a file of measurements to predictions that use them."""

import csv
import io
import json
from dataclasses import replace

import pytest

from farebox.roofline import Replica, gpu, model
from farebox.roofline.constants import read_constants, shipped_constants, write_constants
from farebox.roofline.prediction import kernel_times
from farebox.roofline.scales import Scales
from farebox.roofline.work import Work

ASKED = ("step", "--gpu", "h100", "--model", "llama-3-70b", "--tp", "4", "--batch", "32", "--kv-len", "1024")
HEAD = "gpu,model,weights,tp,phase,batch_size,tokens,kv_len"


@pytest.fixture(autouse=True)
def _no_constants_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_a_step_and_its_parts(inside):
    figures = json.loads(inside(*ASKED, "--weights", "bf16", "--phase", "decode", "--json").stdout)
    assert figures["predicted_ms"] == pytest.approx(sum(figures["parts_ms"].values()), abs=0.001)
    assert list(figures["parts_ms"]) == ["weights", "compute", "KV", "overhead", "all-reduce"]
    assert figures["predicted_ms"] == pytest.approx(17.0, rel=0.05)  # measured: 17.3
    assert figures["calibrated"]
    page = inside(*ASKED)
    assert "llama-3-70b bf16 on 4×H100 SXM: decode of 32 × 1024 tokens" in page.stdout
    assert f"{figures['predicted_ms']:.3f} ms" in page.stdout
    assert "aiconfigurator" in page.stderr


def test_a_gpu_without_measurements_is_marked(inside):
    assert "uncalibrated, ±35 %" in inside("step", "--gpu", "l4").stdout
    assert json.loads(inside("step", "--gpu", "l4", "--json").stdout)["calibrated"] is False


def test_factors_of_a_recorded_run_are_a_line_of_the_table(inside, tmp_path):
    scaled = replace(shipped_constants("h100_sxm"), scales=Scales(weights=1.2, overhead=1.5))
    write_constants(tmp_path / "run.toml", "h100_sxm", scaled)
    own = (*ASKED, "--constants", "run.toml")
    plain, figures = (json.loads(inside(*asked, "--json").stdout) for asked in (ASKED, own))
    assert (plain["scaled"], figures["scaled"]) == (False, True)
    assert figures["predicted_ms"] == plain["predicted_ms"]
    assert figures["engine_ms"] > 1.1 * plain["engine_ms"]
    page = inside(*own).stdout
    factor = figures["engine_ms"] / figures["predicted_ms"]
    assert f"{figures['engine_ms']:.3f} ms  ×{factor:.2f}: as a recorded run took it" in page
    assert "recorded run" not in inside(*ASKED).stdout
    (tmp_path / "one.csv").write_text(f"{HEAD}\nh100,llama-3-8b,bf16,1,decode,8,8,1024\n")
    told = inside("step", "--csv", "one.csv", "--constants", "run.toml").stderr
    assert "without the factors of a recorded run" in told


def test_what_does_not_fit_is_told_and_what_cannot_be_is_refused(inside):
    assert "llama-3-70b does not fit" in inside("step", "--model", "llama-3-70b").stderr
    assert "the KV cache holds" in inside("step", "--batch", "512", "--kv-len", "32000").stderr
    assert "do not split evenly" in inside("step", "--tp", "3", check=2).stderr
    assert (
        "more than their context"
        in inside("step", "--phase", "prefill", "--tokens", "99", "--kv-len", "9", check=2).stderr
    )


def test_a_file_keeps_its_columns_and_its_bad_rows(inside, tmp_path):
    (tmp_path / "steps.csv").write_text(
        f"{HEAD},note\n"
        "h100,llama-3-8b,bf16,1,decode,8,8,1024,a\n"
        'h100,no-such-model,bf16,1,decode,8,8,1024,"b, c"\n'
        "h100,llama-3-8b,bf16,1,prefill,2,1024,512,\n"
        "h100,llama-3-8b\n"
    )
    done = inside("step", "--csv", "steps.csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert list(rows[0]) == [*HEAD.split(","), "note", "predicted_ms"]
    assert [row["note"] for row in rows] == ["a", "b, c", "", ""]
    assert [bool(row["predicted_ms"]) for row in rows] == [True, False, True, False]
    replica = Replica(gpu("h100"), model("llama-3-8b"))
    expected = kernel_times(replica, Work.prefill(2, 512)).total * 1e3
    assert float(rows[2]["predicted_ms"]) == pytest.approx(expected, abs=1e-4)
    assert 'steps.csv:3: unknown model "no-such-model"' in done.stderr
    assert "steps.csv:5: no value for weights, tp" in done.stderr
    assert "2 of 4 rows have no prediction" in done.stderr


def test_a_file_without_a_row_that_can_be_predicted_is_an_error(inside, tmp_path):
    (tmp_path / "steps.csv").write_text(f"{HEAD}\nh100,llama-3-8b,bf16,1,dance,8,8,1024\n")
    assert "no row could be predicted" in inside("step", "--csv", "steps.csv", check=2).stderr
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    assert "no column gpu, model" in inside("step", "--csv", "other.csv", check=2).stderr


def test_whole_numbers_and_names_may_be_spelled_as_pandas_and_people_do(inside, tmp_path):
    (tmp_path / "steps.csv").write_text(
        f"{HEAD}\n"
        "h100,llama-3-8b,bf16,1,decode,8,8,1024\n"
        "H100,Llama-3-8B,BF16,1.0,Decode,8.0,8.0,1024.0\n"
        "h100,llama-3-8b,bf16,1,decode,8.5,8,1024\n"
        "h100,llama-3-8b,bf16,1,decode,1e400,8,1024\n"
        "h100,llama-3-8b,bf16,1,decode,nan,8,1024\n"
    )
    done = inside("step", "--csv", "steps.csv")
    plain, spelled, *bad = [row["predicted_ms"] for row in csv.DictReader(io.StringIO(done.stdout))]
    assert plain == spelled != ""
    assert bad == ["", "", ""]
    for line, text in ((4, "8.5"), (5, "1e400"), (6, "nan")):
        assert f'steps.csv:{line}: batch_size is "{text}"; it must be a whole number' in done.stderr


@pytest.mark.parametrize("command", [("step", "--csv"), ("calibrate",)])
def test_a_file_that_is_no_text_is_refused(inside, tmp_path, command):
    (tmp_path / "steps.csv").write_bytes(b"\x89PNG\xe8\x00")
    assert "steps.csv: not a UTF-8 text file" in inside(*command, "steps.csv", check=2).stderr


@pytest.fixture
def slow_h100(tmp_path):
    """Steps of H100s that take a fifth longer than Farebox thinks."""
    lines = [f"{HEAD},measured_ms"]
    for batch in (1, 8, 64, 256):
        for context in (128, 1024, 4096):
            took = kernel_times(Replica(gpu("h100"), model("llama-3-8b")), Work.decode(batch, context)).total * 1.2e3
            lines.append(f"h100,llama-3-8b,bf16,1,decode,{batch},{batch},{context},{took:.4f}")
    for rows in (256, 1024, 4096):
        took = kernel_times(Replica(gpu("h100"), model("llama-3-8b")), Work.prefill(1, rows)).total * 1.2e3
        lines.append(f"h100,llama-3-8b,bf16,1,prefill,1,{rows},{rows},{took:.4f}")
    (tmp_path / "slow.csv").write_text("\n".join([*lines, "h100,llama-3-8b,bf16,1,decode,1,1,1,0\n"]))


@pytest.mark.usefixtures("slow_h100")
def test_calibrated_constants_are_used_and_named(inside, tmp_path):
    done = inside("calibrate", "slow.csv", "--constants", "own.toml", "--hold-out", "quarter")
    assert "slow.csv:17: measured_ms is 0" in done.stderr
    assert "left out of the fit, by quarter" in done.stdout
    assert "not fixed by these steps" in done.stdout
    assert "reduce.gbps" in done.stdout.split("not fixed")[1]
    origin = read_constants(tmp_path / "own.toml")["h100_sxm"].origin
    assert origin.source == "fitted to 15 steps of slow.csv"
    assert origin.steps == 15
    step = ("step", "--gpu", "h100", "--batch", "16", "--kv-len", "1024", "--json")
    before, after = (json.loads(inside(*step, *more).stdout) for more in ((), ("--constants", "own.toml")))
    assert after["predicted_ms"] / before["predicted_ms"] == pytest.approx(1.2, abs=0.04)
    assert after["constants"].startswith("own.toml: fitted to 15 steps of slow.csv")
    assert "aiconfigurator" in before["constants"]


@pytest.mark.usefixtures("slow_h100")
def test_a_dry_run_keeps_nothing_and_json_is_whole(inside, tmp_path):
    (found,) = json.loads(inside("calibrate", "slow.csv", "--dry-run", "--json").stdout)
    assert found["gpu"] == "h100_sxm"
    assert {error["phase"] for error in found["errors_percent"]} <= {"decode", "prefill"}
    assert any(not width["is_fixed"] for width in found["widths"])
    assert not list(tmp_path.glob("**/*.toml"))
    assert "too few to fit" in inside("calibrate", "slow.csv", "--gpu", "a100", check=2).stderr


def test_recorded_steps_of_a_store_are_measurements(inside, tmp_path):
    inside("run", "--trace", "synthetic:3", "--limit", "60", "--store", "store", "--gpu", "h100")
    done = inside("calibrate", "store", "--constants", "own.toml")
    assert "h100_sxm" in done.stdout
    errors = read_constants(tmp_path / "own.toml")["h100_sxm"].origin.errors
    decode = float(errors.split("decode ")[1].split(" %")[0])
    assert decode < 3
    assert (
        "own.toml: fitted to"
        in inside("run", "--trace", "synthetic:3", "--limit", "5", "--constants", "own.toml").stderr
    )
