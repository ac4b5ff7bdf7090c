"""Models by name: a catalogue of published ones, and any other by its config.json."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from .errors import SpecError
from .model import Experts, Latent, Model
from .naming import find

SHORT_WINDOW = 256
"""Layers that see no more than so many tokens back hold so little cache that it is left out."""


def model(name: str) -> Model:
    """The model called `name` in any usual spelling (`Llama-3-8B`, `meta-llama/Llama-3.1-8B`), or the one that a
    Hugging Face `config.json` at that path describes; else a `SpecError`.
    """
    if name.endswith(".json"):
        return read_config(Path(name))
    return find("model", name, _catalogue(), _aliases())


def model_names() -> list[str]:
    """Canonical names of all known models."""
    return list(_catalogue())


def read_config(path: Path) -> Model:
    """The model that a `config.json` describes, called after its folder; `SpecError` if it cannot be read."""
    try:
        config = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror}; give a known model or the path of its config.json") from error
    except ValueError as error:
        raise SpecError(f"{path} is not JSON: {error}") from error
    if not isinstance(config, dict):
        raise SpecError(f"{path} holds no JSON object: it is not the config.json of a model")
    name = path.resolve().parent.name if path.name == "config.json" else path.stem
    try:
        return from_config(name, config)  # pyright: ignore[reportUnknownArgumentType] -- any JSON object
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from error


def from_config(name: str, config: dict[str, Any]) -> Model:
    """A model from the fields of its Hugging Face config; `SpecError` names the field that is missing or odd."""
    if isinstance(config.get("text_config"), dict):
        config = config["text_config"]
    layers, hidden, heads = (_whole(config, n) for n in ("num_hidden_layers", "hidden_size", "num_attention_heads"))
    intermediate = config.get("intermediate_size") or config.get("moe_intermediate_size")
    return Model(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=_whole(config, "num_key_value_heads", heads),
        head_dim=_whole(config, "head_dim", hidden // heads),
        intermediate=_whole({"intermediate_size": intermediate}, "intermediate_size"),
        vocab=_whole(config, "vocab_size"),
        tied_embeddings=bool(config.get("tie_word_embeddings", False)),
        experts=_experts(config),
        latent=_latent(config),
        windowed_layers=_windowed(config, layers),
    )


def _experts(config: dict[str, Any]) -> Experts | None:
    count = next((config[n] for n in ("num_experts", "n_routed_experts", "num_local_experts") if config.get(n)), None)
    if count is None:
        return None
    intermediate = _whole(config, "moe_intermediate_size", config.get("intermediate_size"))
    shared = config.get("shared_expert_intermediate_size") or intermediate * (config.get("n_shared_experts") or 0)
    chosen = _whole(config, "num_experts_per_tok", config.get("experts_per_token"))
    if chosen > count:
        raise SpecError(f"num_experts_per_tok is {chosen}, more than the {count} experts")
    return Experts(count, chosen, intermediate, shared, config.get("first_k_dense_replace") or 0)


def _latent(config: dict[str, Any]) -> Latent | None:
    if not config.get("kv_lora_rank"):
        return None
    names = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    return Latent(config.get("q_lora_rank") or 0, *(_whole(config, name) for name in names))


def _windowed(config: dict[str, Any], layers: int) -> int:
    if (config.get("sliding_window") or SHORT_WINDOW + 1) > SHORT_WINDOW:
        return 0
    kinds: list[str] | None = config.get("layer_types")
    if kinds:
        return sum(kind == "sliding_attention" for kind in kinds)
    return layers - layers // config.get("full_attention_interval", 1)


def _whole(config: dict[str, Any], name: str, default: int | None = None) -> int:
    value = config.get(name)
    if value is None:
        value = default
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SpecError(f"{name} is {'missing' if value is None else repr(value)}; it must be a number of at least 1")
    return value


@cache
def _document() -> dict[str, Any]:
    return tomllib.loads(files("farebox.roofline").joinpath("models.toml").read_text("utf-8"))


@cache
def _aliases() -> dict[str, list[str]]:
    return {name: spec["aliases"] for name, spec in _document().items()}


@cache
def _catalogue() -> dict[str, Model]:
    return {name: from_config(name, spec["config"]) for name, spec in _document().items()}
