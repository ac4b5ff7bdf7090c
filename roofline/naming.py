"""Forgiving names: `h100` = `H100_SXM`, `Llama-3-8B` = `llama-3-8b`."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from .errors import SpecError

Spec = TypeVar("Spec")


def squeeze(name: str) -> str:
    """The letters and digits of a name in lower case, without an organisation before a slash."""
    return re.sub(r"[^a-z0-9]", "", name.rsplit("/", 1)[-1].lower())


def find(kind: str, name: str, known: Mapping[str, Spec], aliases: Mapping[str, Iterable[str]]) -> Spec:
    """The spec called `name`, by its canonical name or one of its aliases; else a `SpecError` that offers near ones."""
    names = {squeeze(alias): canonical for canonical in known for alias in (canonical, *aliases.get(canonical, ()))}
    canonical = names.get(squeeze(name))
    if canonical is not None:
        return known[canonical]
    near = get_close_matches(squeeze(name), names, n=3, cutoff=0.5)
    hint = ", ".join(dict.fromkeys(names[n] for n in near)) or ", ".join(known)
    raise SpecError(f'unknown {kind} "{name}"; did you mean one of: {hint}?')
