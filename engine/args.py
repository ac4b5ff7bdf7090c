"""An engine's arguments as a run record keeps them: what the record has no column for, as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..roofline.step_model import StepModel
from .speculation import Speculation

if TYPE_CHECKING:
    from .config import EngineConfig

_PLAIN = (
    "scheduling_policy",
    "block_size",
    "enable_prefix_caching",
    "prefix_block_tokens",
    "batch_wait_ms",
    "fast_cap",
    "async_scheduling",
    "cold_start_ns",
)


def args_json(config: EngineConfig) -> str:
    """The arguments of a configuration, by their names there."""
    args: dict[str, Any] = {name: getattr(config, name) for name in _PLAIN}
    if (speculation := config.speculation) is not None:
        draft = None if speculation.draft is None else speculation.draft.to_json()
        args["speculation"] = asdict(speculation) | {"draft": draft}
    return json.dumps(args, separators=(",", ":"))


def read_args(text: str | None) -> dict[str, Any]:
    """What `args_json` wrote, as options of a configuration; none where a run did not tell them."""
    args: dict[str, Any] = json.loads(text) if text else {}
    spoken: dict[str, Any] | None = args.pop("speculation", None)
    if spoken is not None:
        draft = spoken.pop("draft")
        args["speculation"] = Speculation(**spoken, draft=None if draft is None else StepModel.from_json(draft))
    return args
