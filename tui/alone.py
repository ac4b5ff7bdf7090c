"""What a cell would have taken riding alone, by the run's own step model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..events import Share
    from ..roofline.step_model import StepModel


def model_of(text: str | None) -> StepModel | None:
    """Read `Run.step_model`; None when the run has none or it is not one."""
    if not text:
        return None
    from ..roofline.step_model import StepModel

    try:
        return StepModel.from_json(text)
    except (ValueError, TypeError, AttributeError):
        return None


def alone_units(model: StepModel, cell: Share) -> int:
    """Time of a tenant's cell if its sequences had run one after the other, each in steps of its own; in 2⁻²⁰ ns.

    Decodes: every sequence pays the overhead and streams the weights for its own rows. Prefills: the overhead for each
    sequence, but the linear layers once for the cell as it is: alone, a prompt would come in larger chunks. So the
    figure is rather too low than too high. Recomputed rows would not exist alone, and count nothing.
    """
    if cell.account != "tenant" or cell.rows == 0:
        return 0
    seqs = max(1, cell.seqs)
    if cell.phase == "prefill":
        return seqs * model.overhead + model.linear(cell.rows) + cell.attn
    rows, more = divmod(cell.rows, seqs)
    linear = more * model.linear(rows + 1)
    if rows:
        linear += (seqs - more) * model.linear(rows)
    return seqs * model.overhead + linear + cell.attn
