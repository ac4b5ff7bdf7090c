"""A change of engines: other hardware, model, limits or mode, as `--set` and scenario files write it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from ..engine.config import EngineConfig
from ..engine.fleet.endpoint import load_ns
from ..engine.fleet.section import Section
from ..roofline import Replica, gpu, model
from ..roofline.constants import find_constants
from ..roofline.errors import SpecError
from .configuration import recorded_replica
from .errors import PlanError

HARDWARE = ("gpu", "model", "weights", "kv_cache_dtype", "constants")
TEXTS = (*HARDWARE, "mode", "scheduling_policy")
NUMBERS = ("tp", "max_num_seqs", "max_num_batched_tokens", "batch_wait_ms")
FLAGS = ("enable_prefix_caching", "async_scheduling")
ALIASES = {"prefix_caching": "enable_prefix_caching"}
SCALING = ("replicas", "min_replicas", "hours", "weekdays", "tz", "load_seconds")
"""Keys that make a fleet endpoint of the recorded engines."""
WORDS = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
OFF = "off"


@dataclass(frozen=True)
class Change:
    """What to change of every recorded engine; empty: nothing.

    `values` has engine settings by name, `scaling` keys of a fleet file's endpoint.
    """

    values: tuple[tuple[str, Any], ...] = ()
    scaling: tuple[tuple[str, Any], ...] = ()
    price: Decimal | None = None
    """Price of a GPU-hour of the changed engines, in the bill's currency."""

    @classmethod
    def read(cls, section: Section) -> Change:
        """Read the known keys of a section; FleetError names a wrong one. The section may hold others."""
        found: dict[str, Any] = {}
        for key in (*TEXTS, *NUMBERS, *FLAGS, *ALIASES, "fast_cap"):
            if key in section:
                found[ALIASES.get(key, key)] = _value(section, key)
        scaling = {key: section.value(key) for key in SCALING if key in section}
        if "replicas" in scaling and section.whole("replicas") < 1:
            section.fail("replicas", "it must be at least 1")
        return cls(tuple(sorted(found.items())), tuple(scaling.items()), section.price())

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return not self.values and not self.scaling and self.price is None

    @property
    def hardware(self) -> dict[str, Any]:
        """The settings from which another replica follows."""
        return {name: value for name, value in self.values if name in (*HARDWARE, "tp")}

    def apply(self, config: EngineConfig) -> EngineConfig:
        """The changed configuration; PlanError for what cannot be, as a model that does not fit."""
        hardware = self.hardware
        wanted = {name: value for name, value in self.values if name not in hardware}
        if config.mode == "none" and wanted.get("mode", "none") != "none":
            wanted.setdefault("max_num_seqs", EngineConfig.max_num_seqs)
        if wanted.get("mode") == "none":
            wanted["max_num_seqs"] = 1
        try:
            if hardware or "max_num_batched_tokens" in wanted:
                wanted |= self._replica(config, hardware, wanted)
            return replace(config, **wanted)
        except PlanError:
            raise
        except ValueError as error:
            raise PlanError(_keys(str(error))) from error

    def load_ns(self, config: EngineConfig, recorded_ns: int) -> int:
        """How long a changed engine loads, where the recorded one took `recorded_ns`: one that was up needs no time."""
        if not recorded_ns or not self.hardware:
            return recorded_ns
        return load_ns(recorded_replica(config))

    def _replica(self, config: EngineConfig, hardware: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
        """What follows from the replica: step times, KV blocks, names."""
        before = recorded_replica(config)
        tokens = wanted.get("max_num_batched_tokens", config.max_num_batched_tokens)
        if not hardware:
            if before.kv_blocks(config.block_size, config.max_num_batched_tokens) != config.kv_blocks:
                return {}
            return {"kv_blocks": before.kv_blocks(config.block_size, tokens)}
        after = _other(before, hardware)
        return {
            "gpu_type": after.gpu.name,
            "gpus": after.tp,
            "model": after.model.name,
            "weights": after.weights,
            "kv_blocks": after.kv_blocks(config.block_size, tokens),
            "block_bytes": after.block_bytes(config.block_size),
            "step_model": after.step_model(),
            "gpu_uuids": (),
        }


def _value(section: Section, key: str) -> Any:
    if key in TEXTS:
        return section.text(key)
    if key in NUMBERS:
        return section.count(key)
    if key == "fast_cap":
        return None if section.value(key) == OFF else section.count(key)
    return section.flag(key)


def _other(before: Replica, hardware: dict[str, Any]) -> Replica:
    """The replica with other hardware, model or formats. Constants of the same GPU stay, unless a file is named."""
    device = gpu(hardware["gpu"]) if "gpu" in hardware else before.gpu
    file = hardware.get("constants")
    return Replica(
        device,
        model(hardware["model"]) if "model" in hardware else before.model,
        hardware.get("weights", before.weights),
        hardware.get("tp", before.tp),
        hardware.get("kv_cache_dtype", before.kv),
        find_constants(device.name, Path(file) if file else None),
    )


def replica_after(change: Change, config: EngineConfig) -> Replica:
    """The replica that a changed engine is; PlanError for what cannot be."""
    try:
        return _other(recorded_replica(config), change.hardware)
    except SpecError as error:
        raise PlanError(_keys(str(error))) from error


def _keys(message: str) -> str:
    """An engine's message with the keys of a change instead of the flags of `farebox run`."""
    for flag, key in (
        ("--max-num-batched-tokens", "max_num_batched_tokens"),
        ("--weights ", "weights="),
        ("--tp ", "tp="),
        ("--", ""),
    ):
        message = message.replace(flag, key)
    return message


def typed(key: str, text: str) -> Any:
    """What `KEY=TEXT` means on a command line, as a scenario file would have it."""
    name = ALIASES.get(key, key)
    if name in FLAGS and text.lower() in WORDS:
        return WORDS[text.lower()]
    whole = name in (*NUMBERS, "fast_cap", "replicas", "min_replicas")
    if (whole or name == "load_seconds") and text.removeprefix("-").isdigit():
        return int(text)
    return text
