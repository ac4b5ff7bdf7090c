"""llama.cpp beside its page: slots for the KV cache, and the router, which must not be woken."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from ...errors import FareboxError
from ..usage.fields import as_object, as_objects, child, objects
from .fetch import Answer, Fetcher, FetchError
from .page import Page, Sample, read_json, read_page
from .reading import Reading

LOADED = "loaded"


class RestingError(FareboxError):
    """Nothing is loaded, and asking would wake it: the source waits."""


class Router:
    """A llama.cpp server in router mode: only pages of models that are loaded are asked for."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher

    def page(self) -> tuple[Page, float]:
        """The pages of all loaded models as one, each with its model as a label; RestingError when there is none."""
        states = model_states(self._fetcher.get("/models"))
        loaded = [name for name, state in states.items() if state == LOADED]
        if not loaded:
            told = ", ".join(f"{name} is {state}" for name, state in states.items()) or "the router has no model"
            raise RestingError(f"no model is loaded, and reading its page would wake it: {told}")
        answers = {name: self._fetcher.get(f"/metrics?model={quote(name, safe='')}") for name in loaded}
        pages = {name: read_page(answer.text) for name, answer in answers.items()}
        return together(pages), sum(answer.took_s for answer in answers.values())


def is_router(fetcher: Fetcher) -> bool:
    """Whether a server that refuses its page without a model is a llama.cpp router."""
    try:
        return bool(model_states(fetcher.get("/models")))
    except FareboxError:
        return False


def model_states(answer: Answer) -> dict[str, str]:
    """Model → loaded, unloaded, sleeping …, as the router lists them; empty where the answer is not a router's."""
    told = read_json(answer.text)
    states = {str(model.get("id")): child(model, "status").get("value") for model in objects(as_object(told), "data")}
    return {name: str(state) for name, state in states.items() if state is not None}


def together(pages: dict[str, Page]) -> Page:
    """Several models' pages as one."""
    whole = Page()
    for model, page in pages.items():
        for name, samples in page.samples.items():
            labelled = [Sample(sample.labels | {"model": model}, sample.value) for sample in samples]
            whole.samples.setdefault(name, []).extend(labelled)
        whole.bad.extend(page.bad)
        whole.conflicts.update(page.conflicts)
    return whole


class Slots:
    """What a single server tells of its slots and its model; it is asked only while it works, and so awake anyway."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._refused: str | None = None
        self._model: str | None = None
        self._seats: int | None = None
        self._is_known = False

    def add_to(self, reading: Reading) -> None:
        """Fill in model and seats, and the KV cache while somebody rides; whatever is refused stays missing."""
        if not self._is_known:
            self._read_props()
        reading.model = reading.model or self._model
        if self._seats:
            reading.facts.setdefault("seats", self._seats)
        if reading.gauges.get("running"):
            self._read_slots(reading)
        elif self._refused is None:
            reading.missing["kv_ratio"] = "llama.cpp's slots are asked only while somebody rides"
        if self._refused is not None:
            reading.missing["kv_ratio"] = f"not exported by this server, and its slots are not told: {self._refused}"

    def _read_props(self) -> None:
        self._is_known = True
        try:
            props = read_json(self._fetcher.get("/props").text)
        except FareboxError:
            return
        told = as_object(props)
        name = told.get("model_alias") or str(told.get("model_path") or "").rpartition("/")[2]
        self._model = str(name) or None
        self._seats = _count(told.get("total_slots")) or None

    def _read_slots(self, reading: Reading) -> None:
        if self._refused is not None:
            return
        try:
            ratio = used_part(read_json(self._fetcher.get("/slots").text))
        except FetchError as error:
            self._refused = str(error)
            return
        except FareboxError:
            ratio = None
        if ratio is not None:
            reading.kv_ratios, reading.gauges["kv_ratio"] = (ratio,), ratio
            reading.missing.pop("kv_ratio", None)


def used_part(slots: Any) -> float | None:
    """Part of all slots' context that sequences on board fill; None where the answer is not a list of slots.

    `n_prompt_tokens` grows with what is decoded behind the prompt.
    """
    told = as_objects(slots)
    size = sum(_count(slot.get("n_ctx")) for slot in told)
    used = sum(_count(slot.get("n_prompt_tokens")) for slot in told if slot.get("is_processing"))
    return used / size if size and used <= size else None


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0
