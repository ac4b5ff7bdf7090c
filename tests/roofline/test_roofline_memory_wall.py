"""Riding together: what the weights cost when one request rides, and when thirty-two share them."""

import pytest

from farebox.roofline import UNITS_PER_NS, StepModel, gpu

H100 = gpu("h100")
KV_TOKEN_BYTES = 2 * 80 * 8 * 128 * 2  # 80 layers, 8 KV heads of 128, keys and values in bf16


def fifty_billion(bandwidth: float, compute: float) -> StepModel:
    return StepModel.of(
        weight_bytes=100 * 10**9,
        kv_token_bytes=KV_TOKEN_BYTES,
        flops_row=2 * 50 * 10**9,
        flops_pair=4 * 80 * 64 * 128,
        bandwidth=H100.bandwidth * bandwidth,
        kv_bandwidth=H100.bandwidth * bandwidth,
        flops=H100.bf16_flops * compute,
        attention_flops=H100.bf16_flops * compute,
    )


def decode_ms(model: StepModel, batch: int, context: int) -> float:
    units = model.step(batch, batch * model.attention(1, context - 1))
    return units / UNITS_PER_NS / 1e6


def test_100_gb_of_weights_stream_in_29_9_ms_at_datasheet_bandwidth():
    model = fifty_billion(bandwidth=1.0, compute=1.0)
    assert model.weights / UNITS_PER_NS / 1e6 == pytest.approx(29.9, abs=0.05)


@pytest.mark.parametrize(("context", "saving"), [(1024, 29.0), (4096, 22.7), (16384, 12.4)])
def test_thirty_two_decodes_cost_a_fraction_of_one_alone_but_never_the_naive_32nd(context: int, saving: float):
    model = fifty_billion(bandwidth=0.8, compute=0.7)
    alone = decode_ms(model, 1, context)
    shared = decode_ms(model, 32, context) / 32
    assert alone / shared == pytest.approx(saving, abs=0.05)


def test_llama_3_70b_keeps_327_680_bytes_a_token():
    assert KV_TOKEN_BYTES == 327_680
