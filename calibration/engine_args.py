"""The arguments that a recorded vLLM ran with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from .errors import RecordingError
from .json_lines import Fields, read_document

_OTHER_NAMES = {"tensor_parallel_size": "tp_size", "model": "model_name"}
"""What a cluster description calls them."""
_FORMATS = {"fp8": "fp8", "int8": "int8", "awq": "int4", "awq_marlin": "int4", "gptq": "int4", "gptq_marlin": "int4"}


@dataclass(frozen=True)
class EngineArgs:
    """What a replay needs of a vLLM's arguments, under vLLM's names; None: the recording does not say."""

    model: str | None
    device_names: tuple[str, ...]
    """What the GPU is called, by all who say so."""
    weights: str = "bf16"
    tensor_parallel_size: int = 1
    data_parallel_size: int = 1
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    block_size: int = 16
    num_gpu_blocks: int | None = None
    enable_prefix_caching: bool = True
    async_scheduling: bool = True
    """On by default since vLLM schedules asynchronously on CUDA."""


def read_engine_args(path: Path, *more: Path) -> EngineArgs:
    """Read a JSON file of engine arguments, plain or grouped; `more` files fill in what the first does not say.

    Groups are those of a run's metadata (`engine_kwargs`, `kv_cache`, `hardware`, `resolved_config`) and of a cluster
    description (`nodes`, `instances`).

    Raises:
        RecordingError: not a JSON object, or arguments that no engine could run with.
        OSError: a file that cannot be read.
    """
    groups = [group for file in (path, *more) for group in _groups(read_document(file))]
    quantization = _first(groups, "quantization")
    if quantization is not None and quantization not in _FORMATS:
        raise RecordingError(path, None, f"weights quantised as {quantization!r} are not known here")
    default = EngineArgs(None, ())
    return EngineArgs(
        model=_text(groups, "model"),
        device_names=tuple(
            name for key in ("device_name", "hardware") for group in groups if isinstance(name := group.get(key), str)
        ),
        weights="bf16" if quantization is None else _FORMATS[quantization],
        tensor_parallel_size=_count(path, groups, "tensor_parallel_size", default.tensor_parallel_size),
        data_parallel_size=_count(path, groups, "data_parallel_size", default.data_parallel_size),
        max_num_seqs=_count(path, groups, "max_num_seqs", default.max_num_seqs),
        max_num_batched_tokens=_count(path, groups, "max_num_batched_tokens", default.max_num_batched_tokens),
        block_size=_count(path, groups, "block_size", default.block_size),
        num_gpu_blocks=_count(path, groups, "num_gpu_blocks", 0) or None,
        enable_prefix_caching=_first(groups, "enable_prefix_caching") is not False,
        async_scheduling=_first(groups, "async_scheduling") is not False,
    )


def _groups(document: Fields) -> Iterable[Fields]:
    """The document and all objects inside it, the outer ones first."""
    waiting: list[Any] = [document]
    for value in waiting:
        if isinstance(value, dict):
            group = cast("Fields", value)
            yield group
            waiting.extend(group.values())
        elif isinstance(value, list):
            waiting.extend(cast("list[Any]", value))


def _first(groups: list[Fields], name: str) -> Any:
    """The first plain value that any group has under a name."""
    for group in groups:
        for key in (name, name.replace("_", "-"), _OTHER_NAMES.get(name, name)):
            value = group.get(key)
            if value is not None and not isinstance(value, (dict, list)):
                return value
    return None


def _text(groups: list[Fields], name: str) -> str | None:
    value = _first(groups, name)
    return value if isinstance(value, str) else None


def _count(path: Path, groups: list[Fields], name: str, default: int) -> int:
    value = _first(groups, name)
    if value is None:
        return default
    if type(value) is not int or value < 1:
        raise RecordingError(path, None, f"{name} is {value!r}; it must be a whole number of at least 1")
    return value
