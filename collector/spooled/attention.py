"""Attention: what reading the KV cache took, from how much of it the rows read."""

from __future__ import annotations

from ...events import Run, Share, Step
from ...roofline import Replica, SpecError, StepModel, gpu, model
from .told import Cell, StepTold


def with_step_model(run: Run) -> Run:
    """The run with the constants of its step model, where its GPU and model are known and it does not bring its own."""
    if run.step_model is not None or not run.gpus:
        return run
    try:
        replica = Replica(gpu(run.gpu_type), model(run.model), run.weights, run.gpus)
    except (SpecError, OSError):
        return run
    return run._replace(step_model=replica.step_model().to_json())


def priced(told: StepTold, constants: StepModel | None) -> tuple[Step, list[Share]]:
    """A step with its arithmetic and cells with their attention time (Σ a_i); without constants as they are.

    A decoding row reads all it attends to; rows of a prompt share what they read, so their arithmetic counts.
    """
    step, cells = told
    if constants is None:
        return step, [cell.share for cell in cells]
    prompts = sum(cell.share.seqs for cell in cells if cell.share.phase == "prefill")
    shares: list[Share] = []
    number = 0
    for cell in cells:
        share, attn = cell.share, _attention(cell, constants)
        if share.phase == "prefill" and prompts:
            attn += constants.prompt * (number + share.seqs) // prompts - constants.prompt * number // prompts
            number += share.seqs
        shares.append(share._replace(attn=attn))
    if step.flops is None:
        attended = sum(cell.attended for cell in cells)
        step = step._replace(flops=constants.flops(step.prefill_tokens + step.decode_tokens, attended))
    return step, shares


def _attention(cell: Cell, constants: StepModel) -> int:
    if cell.share.phase == "prefill":
        return constants.attn_pair * cell.attended
    return max(constants.kv_token, constants.attn_pair) * cell.attended
