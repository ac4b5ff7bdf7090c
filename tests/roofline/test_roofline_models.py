"""Mixtures of experts, latent attention, weight and KV formats, and models by their config.json."""

import json

import pytest

from farebox.roofline import Replica, SpecError, gpu, model
from farebox.roofline.matrix import Matrix

SMALL = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size")


@pytest.mark.parametrize(
    ("name", "billions", "active"),
    [
        ("mistral-7b-instruct-v0.3", 7.25, 7.25),
        ("llama-3.1-405b", 405.85, 405.85),
        ("mixtral-8x7b", 46.7, 12.9),
        ("qwen3-30b-a3b", 30.5, 3.3),
        ("qwen3-235b-a22b", 235.1, 22.2),
        ("deepseek-v3", 671.0, 37.6),
        ("gpt-oss-20b", 20.9, 4.2),
        ("gpt-oss-120b", 116.8, 5.7),
        ("gemma-2-27b", 27.2, 27.2),
    ],
)
def test_parameters_are_the_published_ones(name: str, billions: float, active: float):
    spec = model(name)
    assert spec.params / 1e9 == pytest.approx(billions, abs=0.06)
    heads = spec.params - spec.layer_params
    assert (spec.active_params + heads) / 1e9 == pytest.approx(active, abs=0.06)


def test_mistral_has_another_vocabulary_since_its_third_version():
    assert (model("mistral-7b-instruct-v0.2").vocab, model("mistral-7b-instruct-v0.3").vocab) == (32_000, 32_768)


def test_rows_touch_as_many_experts_as_chance_has_it():
    """Mixtral: 8 experts, 2 per row: 8·(1 − (3/4)^rows)."""
    matrix = Matrix(14336, 4096, copies=32, experts=8, chosen=2)
    assert [matrix.touched(rows) for rows in (0, 1, 2, 4)] == pytest.approx([0, 2, 3.5, 5.46875])
    assert matrix.touched(1000) == pytest.approx(8)
    assert matrix.params == 4 * matrix.active
    assert Matrix(4, 4).touched(1) == Matrix(4, 4).touched(500) == 1


def test_a_mixture_reads_a_quarter_of_its_experts_for_one_row_and_all_for_many():
    replica = Replica(gpu("h100"), model("mixtral-8x7b"), tp=2)
    constants = replica.step_model()
    assert 0.25 < constants.streamed(1) / constants.weights < 0.35
    assert constants.linear(1) < constants.linear(8) / 2
    assert constants.streamed(2) > 1.5 * constants.streamed(1)
    assert constants.streamed(200) == pytest.approx(constants.weights, rel=1e-6)
    assert constants.bytes_read(0, rows=1) < 0.35 * constants.weight_bytes
    dense = Replica(gpu("h100"), model("llama-3-8b")).step_model()
    assert dense.bytes_read(10, rows=1) == dense.bytes_read(10, rows=4000) == dense.weight_bytes + 10 * 131_072


def test_latent_attention_caches_576_numbers_a_layer_on_every_gpu():
    """DeepSeek-V3: 61 layers × (512 + 64) × 2 bytes; it does not split over GPUs."""
    spec = model("deepseek-v3")
    assert spec.kv_bytes == 70_272
    assert [Replica(gpu("h200"), spec, "fp8", tp).kv_token_bytes for tp in (1, 8)] == [70_272, 8 * 70_272]


def test_grouped_heads_split_over_gpus_until_each_has_one():
    spec = model("llama-3-70b")
    assert [Replica(gpu("h200"), spec, tp=tp).kv_token_bytes for tp in (1, 8, 16)] == [327_680, 327_680, 655_360]


def test_half_of_gpt_oss_sees_128_tokens_back_and_its_cache_does_not_count():
    assert model("gpt-oss-20b").kv_bytes == 12 * 2 * 8 * 64 * 2


def test_kv_in_fp8_takes_half_the_room_and_half_the_time():
    wide, narrow = (Replica(gpu("h100"), model("llama-3-8b"), kv=kv) for kv in ("bf16", "fp8"))
    assert wide.kv_token_bytes == 2 * narrow.kv_token_bytes
    assert narrow.kv_blocks() == pytest.approx(2 * wide.kv_blocks(), abs=1)
    assert narrow.step_model().kv_token == pytest.approx(wide.step_model().kv_token / 2, abs=1)
    with pytest.raises(SpecError, match='unknown KV format "fp4"'):
        Replica(gpu("h100"), model("llama-3-8b"), kv="fp4")


def test_int4_reads_a_quarter_and_computes_as_bf16():
    bf16, int8, int4 = (Replica(gpu("a100"), model("llama-3-8b"), w).step_model() for w in ("bf16", "int8", "int4"))
    assert int4.weights < int8.weights < bf16.weights
    assert int4.row == pytest.approx(bf16.row, rel=0.02)
    assert int8.row < 0.85 * bf16.row


def test_a_config_json_gives_the_same_model(tmp_path):
    folder = tmp_path / "Meta-Llama-3-8B"
    folder.mkdir()
    config = {
        "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
        "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False, "model_type": "llama",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    read, known = model(str(folder / "config.json")), model("llama-3-8b")
    assert read.name == "Meta-Llama-3-8B"
    assert (read.params, read.kv_bytes, read.matrices(2)) == (known.params, known.kv_bytes, known.matrices(2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "holds no JSON object"),
        ("{", "is not JSON"),
        ('{"hidden_size": 8}', "num_hidden_layers is missing"),
        ('{"num_hidden_layers": 2, "hidden_size": "8", "num_attention_heads": 2}', "hidden_size is '8'"),
        (
            json.dumps(dict.fromkeys(SMALL, 2) | {"num_experts": 4, "num_experts_per_tok": 5}),
            "more than the 4 experts",
        ),
    ],
)
def test_a_config_that_is_none_says_what_is_wrong(tmp_path, text: str, message: str):
    file = tmp_path / "config.json"
    file.write_text(text)
    with pytest.raises(SpecError, match=message):
        model(str(file))
    with pytest.raises(SpecError, match="No such file"):
        model(str(tmp_path / "none.json"))
