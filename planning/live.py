"""Living recorded time once more: as it was, and under a scenario."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from ..engine.arrival import Arrival
from ..engine.config import EngineConfig
from ..engine.fleet import Endpoint, Fleet
from ..engine.fleet.file import read_endpoint
from ..engine.fleet.section import Section
from ..events import Rate, Run
from .change import Change, replica_after
from .outcome import Outcome
from .replay import OnTick, refuse, replay_endpoints, replay_engine
from .rule import ruled
from .scenario import Scenario
from .tally import Lived
from .traffic import Recorded, RecordedRun, groups_of

_PRICED_FROM_NS = 0


def as_it_was(recorded: Recorded, on_tick: OnTick | None = None) -> Outcome:
    """The recorded traffic through the recorded engines: to the nanosecond what an embedded engine recorded."""
    lived = [_run_again(each, each.config, each.arrivals, each.run.load_ns, on_tick) for each in recorded.runs]
    return Outcome(tuple(lived), recorded.rates)


def under(recorded: Recorded, scenario: Scenario, on_tick: OnTick | None = None) -> Outcome:
    """The recorded traffic under a scenario; raises PlanError for one that cannot be."""
    scenario.check(recorded)
    if scenario.fleet is not None:
        return _by_fleet(recorded, scenario, scenario.fleet, on_tick)
    asked, led = _asked(recorded, scenario)
    lived, own = _engines(recorded, scenario, asked, on_tick)
    for endpoint in scenario.endpoints:
        lived += replay_endpoints(Fleet((endpoint,)), led[endpoint.name], on_tick)
    prices = _prices(scenario.endpoints) | own
    return Outcome(tuple(lived), rates_under(recorded, prices, [each.run for each in lived]))


def _run_again(
    recorded: RecordedRun,
    config: EngineConfig,
    arrivals: Sequence[Arrival],
    load_ns: int,
    on_tick: OnTick | None,
) -> Lived:
    run = recorded.run
    if recorded.is_refusal:
        return refuse(config, arrivals, run.started_ns)
    ends_ns = run.wall_end_ns if recorded.stays_up else None
    return replay_engine(config, arrivals, run.started_ns, load_ns, ends_ns, on_tick)


Asked = dict[tuple[str, str], list[Arrival]]


def _asked(recorded: Recorded, scenario: Scenario) -> tuple[Asked, dict[str, list[Arrival]]]:
    """What each recorded run is asked under the rules, and what each further endpoint is, in order of arrival."""
    stay: Asked = {run.key: [] for run in recorded.runs}
    led: defaultdict[str, list[Arrival]] = defaultdict(list)
    for run in recorded.runs:
        for arrival in run.arrivals:
            changed, endpoint = ruled(arrival, scenario.rules, run.config.prefix_block_tokens)
            (stay[run.key] if endpoint is None else led[endpoint]).append(changed)
    for arrivals in led.values():
        arrivals.sort(key=lambda arrival: arrival.arrived_ns)
    return stay, _told_apart(led)


def _told_apart(led: dict[str, list[Arrival]]) -> dict[str, list[Arrival]]:
    """Requests of several runs on one endpoint, where ids are unique only within a run."""
    for name, arrivals in led.items():
        if len({arrival.request_id for arrival in arrivals}) < len(arrivals):
            led[name] = [a._replace(request_id=f"{a.request_id}#{n}") for n, a in enumerate(arrivals)]
    return led


class _Price(NamedTuple):
    per_gpu_hour: Decimal
    currency: str


class _Lived(NamedTuple):
    """Recorded engines under a scenario, and what some of them cost, by name."""

    lived: list[Lived]
    prices: dict[str, _Price]


def _engines(recorded: Recorded, scenario: Scenario, asked: Asked, on_tick: OnTick | None) -> _Lived:
    """The recorded engines, changed. One that nobody asks any more is not started."""
    found = _Lived([], {})
    for name, runs in groups_of(recorded.runs).items():
        alike, change = [run for run in runs if asked[run.key] or not run.arrivals], scenario.change_of(name)
        if not alike:
            continue
        engines = (
            _scaled(name, alike, change, asked, on_tick) if change.scaling else _again(alike, change, asked, on_tick)
        )
        found.lived.extend(engines)
        if change.price is not None:
            price = _Price(change.price, _currency(recorded.rates))
            found.prices.update((each.run.engine_id, price) for each in engines)
    return found


def _again(runs: Sequence[RecordedRun], change: Change, asked: Asked, on_tick: OnTick | None) -> list[Lived]:
    """Every run by itself, with the requests that it had."""
    lived: list[Lived] = []
    for run in runs:
        config = _renamed(change.apply(run.config), run.config)
        lived.append(_run_again(run, config, asked[run.key], change.load_ns(config, run.run.load_ns), on_tick))
    return lived


def _renamed(config: EngineConfig, before: EngineConfig) -> EngineConfig:
    """An engine on another type of GPU is on another host: what was paid for that host says nothing of it."""
    if config.gpu_type == before.gpu_type:
        return config
    host, name = (f"{text} ({config.gpu_type})" for text in (before.host, before.engine_id))
    return replace(config, host=host, engine_id=name)


def _scaled(
    name: str, alike: Sequence[RecordedRun], change: Change, asked: Asked, on_tick: OnTick | None
) -> list[Lived]:
    """Recorded engines that are alike as the replicas of one endpoint, with other hours or another number."""
    arrivals = sorted((a for run in alike for a in asked[run.key]), key=lambda arrival: arrival.arrived_ns)
    endpoint = _endpoint(name, alike, change)
    return replay_endpoints(Fleet((endpoint,)), _told_apart({name: arrivals})[name], on_tick)


def _endpoint(name: str, alike: Sequence[RecordedRun], change: Change) -> Endpoint:
    """The endpoint of replicas that are alike; numbers and hours come from the change, else as many as there were."""
    before = alike[0].config
    config = _renamed(change.apply(before), before)
    replica = replica_after(change, before)
    count = len({run.run.engine_id for run in alike})
    values: dict[str, Any] = {
        "name": name, "gpu": replica.gpu.name, "model": replica.model.name, "tp": replica.tp,
        "weights": replica.weights, "kv_cache_dtype": replica.kv, "host": config.host, "replicas": count,
    }  # fmt: skip
    endpoint = read_endpoint(Section("--set", values | dict(change.scaling)), "UTC")
    return replace(endpoint, engine=replace(config, engine_id=name, run_id=""))


def _by_fleet(recorded: Recorded, scenario: Scenario, fleet: Fleet, on_tick: OnTick | None) -> Outcome:
    tokens = recorded.runs[0].config.prefix_block_tokens
    arrivals = [ruled(arrival, scenario.rules, tokens)[0] for arrival in recorded.arrivals]
    lived = replay_endpoints(fleet, _told_apart({"": arrivals})[""], on_tick)
    runs = [each.run for each in lived]
    return Outcome(tuple(lived), rates_under(recorded, _prices(fleet.endpoints), runs))


def _prices(endpoints: Sequence[Endpoint]) -> dict[str, _Price]:
    """Prices of engines whose endpoint has one."""
    return {
        endpoint.engine_id(number): _Price(endpoint.price, endpoint.currency)
        for endpoint in endpoints
        if endpoint.price is not None
        for number in range(endpoint.replicas)
    }


def _currency(rates: Sequence[Rate]) -> str:
    return rates[0].currency if rates else "USD"


def rates_under(recorded: Recorded, prices: dict[str, _Price], runs: Iterable[Run]) -> tuple[Rate, ...]:
    """The rates that hold for a scenario's runs: prices of engines go first, and a rate for any GPU holds for the types
    that were recorded, since nobody said what another one costs.
    """
    known = {run.run.gpu_type for run in recorded.runs}
    used = list(runs)
    priced = {run.engine_id: prices[run.engine_id] for run in used if run.engine_id in prices}
    rates = [rate for rate in recorded.rates if not (rate.scope == "engine" and rate.name in priced)]
    if any(run.gpu_type not in known and run.engine_id not in priced for run in used):
        rates = list(_narrowed(rates, known))
    own = [
        Rate("engine", engine_id, price.currency, f"{price.per_gpu_hour:f}", None, _PRICED_FROM_NS, None, "scenario")
        for engine_id, price in priced.items()
    ]
    return (*rates, *own)


def _narrowed(rates: Sequence[Rate], known: Iterable[str]) -> Iterable[Rate]:
    own = {rate.name for rate in rates if rate.scope == "gpu_type"}
    for rate in rates:
        if rate.scope != "any":
            yield rate
            continue
        for gpu_type in sorted(set(known) - own):
            yield rate._replace(scope="gpu_type", name=gpu_type)
