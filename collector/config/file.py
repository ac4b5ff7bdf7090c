"""Reading the file, and saying what is wrong with it in its own words."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from ...errors import InputError
from .alerts import AlertsConfig, RuleConfig
from .collecting import CollectConfig
from .retention import RetentionConfig
from .sources import DcgmConfig, NvmlConfig, OtlpConfig, PageConfig, ScrapeConfig, SpoolConfig

_SOURCES: dict[str, type[BaseModel]] = {
    "scrape": ScrapeConfig,
    "spool": SpoolConfig,
    "nvml": NvmlConfig,
    "dcgm": DcgmConfig,
    "otlp": OtlpConfig,
}


def read_config(path: Path) -> CollectConfig:
    """The file at `path`; its relative paths are meant from its folder. InputError names every fault in it."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror} (farebox collect --example prints one)") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} is no TOML: {error}") from None
    try:
        config = CollectConfig.model_validate(document)
    except ValidationError as error:
        faults = "\n  ".join(_fault(fault) for fault in error.errors(include_url=False))
        raise InputError(f"{path}:\n  {faults}") from None
    config = _from_folder(config, path.parent)
    _check_together(config, path)
    return config


def _fault(fault: Any) -> str:
    place, kind, message = fault["loc"], fault["type"], str(fault["msg"])
    if kind == "extra_forbidden":
        near = get_close_matches(str(place[-1]), _keys_at(place), n=1, cutoff=0.5)
        return f"{_spelled(place)}: there is no such key" + (f"; did you mean {near[0]}?" if near else "")
    if kind == "missing":
        return f"{_spelled(place)} is missing"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return f"{_spelled(place)}.kind must be one of {', '.join(_SOURCES)}"
    return f"{_spelled(place)} = {fault['input']!r}: {message[:1].lower()}{message[1:]}"


def _keys_at(place: Sequence[Any]) -> Iterable[str]:
    """The keys that the section of a place has."""
    if place[0] == "source" and len(place) > 2:
        return _SOURCES[str(place[2])].model_fields
    if place[0] == "alerts" and len(place) > 1:
        return (RuleConfig if place[1] == "rule" else AlertsConfig).model_fields
    return RetentionConfig.model_fields if place[0] == "retention" else CollectConfig.model_fields


def _spelled(place: Sequence[Any]) -> str:
    """A place as a person would name it: `source 2 (scrape).url`."""
    words: list[str] = []
    for part in place:
        if isinstance(part, int):
            words[-1] += f" {part + 1}"
        elif words and words[-1].startswith("source ") and part in _SOURCES and "(" not in words[-1]:
            words[-1] += f" ({part})"
        else:
            words.append(str(part))
    return ".".join(words)


def _from_folder(config: CollectConfig, folder: Path) -> CollectConfig:
    sources = tuple(
        source.model_copy(
            update={
                name: folder / value for name in source.model_fields_set if _is_path(value := getattr(source, name))
            }
        )
        for source in config.source
    )
    return config.model_copy(update={"store": folder / config.store, "source": sources})


def _is_path(value: object) -> bool:
    return isinstance(value, Path)


def _check_together(config: CollectConfig, path: Path) -> None:
    """What no key can tell alone: names that are there twice, secrets named twice."""
    scraped = [source for source in config.source if isinstance(source, ScrapeConfig)]
    names = Counter(source.engine or source.url for source in scraped)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise InputError(f'{path}: two scrape sources are called {twice[0]}: give each another engine = "…"')
    if sum(isinstance(source, NvmlConfig) for source in config.source) > 1:
        raise InputError(f"{path}: there can be one source of kind nvml: it reads all GPUs")
    for source in config.source:
        if isinstance(source, PageConfig) and source.token_env and source.token_file:
            raise InputError(f"{path}: source {source.url}: give token_env or token_file, not both")
