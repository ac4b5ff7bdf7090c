"""Constants of kernels with their origin: shipped ones, and a user's own in a file that `farebox calibrate` writes."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from .errors import SpecError
from .kernels import DecodeRates, Kernels, MatrixRates, PrefillRates, ReduceRates
from .scales import Scales

UNCALIBRATED = "uncalibrated, ±35 %"
"""What a prediction is worth on a GPU that nobody has measured."""
GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where constants come from; `errors` are means and 90th percentiles of |%| on steps kept out of the fit."""

    source: str
    date: str = ""
    steps: int = 0
    errors: str = ""
    file: str = ""
    """The file that holds them; empty for shipped ones."""

    @property
    def is_calibrated(self) -> bool:
        """False for typical values of a GPU that was not measured."""
        return self.source != GENERIC

    def __str__(self) -> str:
        if not self.is_calibrated:
            return UNCALIBRATED
        place = f"{self.file}: " if self.file else ""
        return f"{place}{self.source}" + (f", {self.date}" if self.date else "")


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants of one GPU type and where they come from."""

    kernels: Kernels
    origin: Origin
    scales: Scales = field(default_factory=Scales)
    """What a recorded engine took, compared with these kernels."""

    @property
    def is_scaled(self) -> bool:
        """Whether a recorded run moved any of the factors."""
        return self.scales != Scales()


def shipped_constants(gpu: str) -> Constants:
    """The constants that come with Farebox; typical ones, marked as uncalibrated, for a GPU without measurements."""
    known = _shipped()
    return known.get(gpu) or known[GENERIC]


def user_file() -> Path:
    """Where a user's own constants are kept unless a command names another file."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "farebox" / "calibration.toml"


def find_constants(gpu: str, file: Path | None = None) -> Constants:
    """The constants for a GPU type: from `file`, else from the user's own file, else the shipped ones.

    Raises SpecError if `file` cannot be read or knows nothing of this GPU.
    """
    if file is not None:
        known = read_constants(file)
        if gpu not in known:
            raise SpecError(f"{file} has no constants for {gpu}, only for {', '.join(known) or 'nothing'}")
        return known[gpu]
    own = user_file()
    if own.is_file() and gpu in (known := read_constants(own)):
        return known[gpu]
    return shipped_constants(gpu)


def read_constants(file: Path) -> dict[str, Constants]:
    """All constants in a file, by GPU type; SpecError if it is not one that `write_constants` wrote."""
    try:
        document = tomllib.loads(file.read_text("utf-8"))
        return {gpu: _constants(table, str(file)) for gpu, table in document.items()}
    except OSError as error:
        raise SpecError(f"{file}: {error.strerror}; `farebox calibrate` writes such a file") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SpecError(f"{file} holds no constants that can be read: {error}") from error


def write_constants(file: Path, gpu: str, constants: Constants) -> None:
    """Put the constants of a GPU type into a file, beside those of others that it holds."""
    known = read_constants(file) if file.is_file() else {}
    known[gpu] = constants
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text("\n".join(_toml(name, one) for name, one in sorted(known.items())), "utf-8")
    fresh.replace(file)


@cache
def _shipped() -> dict[str, Constants]:
    text = files("farebox.roofline").joinpath("constants.toml").read_text("utf-8")
    return {gpu: _constants(table, "") for gpu, table in tomllib.loads(text).items()}


def _constants(table: Mapping[str, Any], file: str) -> Constants:
    kernels = Kernels(
        matrices={weights: MatrixRates(**_floats(rates)) for weights, rates in table["matrices"].items()},
        decode=DecodeRates(**_floats(table["decode"])),
        prefill=PrefillRates(**_floats(table["prefill"])),
        reduce=ReduceRates(**_floats(table["reduce"])),
        step_us=float(table.get("step_us", 0.0)),
    )
    known = {one.name for one in fields(Origin)} - {"file"}
    origin = {name: value for name, value in table["origin"].items() if name in known}
    return Constants(kernels, Origin(**origin, file=file), Scales(**_floats(table.get("scales", {}))))


def _floats(table: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in table.items()}


def _toml(gpu: str, constants: Constants) -> str:
    """The constants as TOML, four digits each."""
    kernels, origin = constants.kernels, asdict(constants.origin)
    del origin["file"]
    lines = [f"[{gpu}]", f"step_us = {kernels.step_us:.4g}", f"origin = {_inline(origin)}"]
    lines += [f"matrices.{weights} = {_inline(asdict(rates))}" for weights, rates in kernels.matrices.items()]
    lines += [f"{name} = {_inline(asdict(getattr(kernels, name)))}" for name in ("decode", "prefill", "reduce")]
    lines += [f"scales = {_inline(asdict(constants.scales))}"] if constants.is_scaled else []
    return "\n".join(lines) + "\n"


def _inline(values: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f"{name} = {_value(value)}" for name, value in values.items()) + " }"


def _value(value: Any) -> str:
    if isinstance(value, str):
        plain = "".join(c if c.isprintable() else " " for c in value)
        return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value) if isinstance(value, int) else f"{value:.4g}"
