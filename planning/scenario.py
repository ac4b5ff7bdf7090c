"""A scenario: what to change of the recorded engines and their traffic."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..engine.fleet import Endpoint, Fleet
from ..engine.fleet.errors import FleetError
from ..engine.fleet.file import read_endpoint
from ..engine.fleet.section import Section
from .change import Change, typed
from .errors import PlanError
from .rule import Rule
from .slo import Slo, duration_ns
from .traffic import Recorded, groups_of


@dataclass(frozen=True)
class Scenario:
    """Recorded engines under `change`, beside further `endpoints` to which `rules` lead; or a `fleet` instead of all.

    Requests that no rule leads elsewhere stay on the engine that they were recorded on.
    """

    change: Change = field(default_factory=Change)
    """Of all recorded engines."""
    targeted: tuple[tuple[str, Change], ...] = ()
    """Of the recorded engines of one endpoint, by its name, on top of that."""
    rules: tuple[Rule, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    fleet: Fleet | None = None
    slos: tuple[Slo, ...] = ()
    name: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return self.leaves_engines and not self.rules and not self.endpoints and self.fleet is None

    @property
    def leaves_engines(self) -> bool:
        """Whether recorded engines stay as they were."""
        return self.change.is_empty and all(change.is_empty for _, change in self.targeted)

    def change_of(self, name: str) -> Change:
        """What changes of the recorded engines of an endpoint."""
        own = [change for target, change in self.targeted if target == name]
        return self.change if not own else merged_change(self.change, own[0])

    def check(self, recorded: Recorded) -> None:
        """Raise PlanError for what cannot be meant: tenants and endpoints that do not exist, or that nobody reaches."""
        for rule in self.rules:
            if not any(rule.when.takes(arrival) for arrival in recorded.arrivals):
                _refuse_rule(rule, recorded)
        for slo in self.slos:
            if not any(slo.binds(tenant) for tenant in recorded.tenants):
                raise PlanError(_no_tenant(slo.tenant, recorded))
        if self.fleet is not None:
            if self.endpoints or not self.leaves_engines or any(rule.endpoint for rule in self.rules):
                raise PlanError("a fleet takes the place of all recorded engines: change it in its own file")
            return
        known = groups_of(recorded.runs)
        for target, _ in self.targeted:
            if target not in known:
                raise PlanError(f'--set: there is no recorded endpoint "{target}"; there are: {", ".join(known)}')
        _check_endpoints(self.endpoints, {rule.endpoint for rule in self.rules if rule.endpoint}, recorded)


def _check_endpoints(endpoints: Sequence[Endpoint], led: set[str], recorded: Recorded) -> None:
    """Routes lead to endpoints that are described, and every one of these gets requests under a name of its own."""
    names = [endpoint.name for endpoint in endpoints]
    for name in sorted(led - set(names)):
        others = f"there are: {', '.join(names)}" if names else "describe it with --endpoint NAME:gpu=…,model=…"
        raise PlanError(f'there is no endpoint "{name}"; {others}')
    taken = {run.run.engine_id for run in recorded.runs} | {run.run.host for run in recorded.runs}
    for endpoint in endpoints:
        name = endpoint.name
        if name not in led:
            raise PlanError(
                f'endpoint "{name}" gets no requests: lead some to it with --route CONDITION:endpoint={name}'
            )
        if {name, *(endpoint.engine_id(number) for number in range(endpoint.replicas))} & taken:
            raise PlanError(f'endpoint "{name}" has the name of a recorded engine or host; choose another')


def _refuse_rule(rule: Rule, recorded: Recorded) -> None:
    tenant = rule.when.tenant
    if tenant is not None and "*" not in tenant and tenant not in recorded.tenants:
        raise PlanError(_no_tenant(tenant, recorded))
    raise PlanError(f"a route takes no request of the recorded traffic: {rule.conditions}")


def _no_tenant(name: str, recorded: Recorded) -> str:
    return f'there is no tenant "{name}" in the recorded traffic; there are: {", ".join(recorded.tenants)}'


def parse_scenario(
    settings: Sequence[str] = (),
    routes: Sequence[str] = (),
    endpoints: Sequence[str] = (),
    slos: Sequence[str] = (),
    file: Path | None = None,
    fleet: Path | None = None,
) -> Scenario:
    """The scenario of a file, with what the command line says on top; PlanError or FleetError names what is wrong."""
    base = Scenario() if file is None else read_scenario(file)
    everywhere = [text for text in settings if not _target(text)]
    change = merged_change(base.change, change_of(everywhere)) if everywhere else base.change
    return Scenario(
        change,
        (*_targeted(settings), *base.targeted),
        (*(Rule.parse(text) for text in routes), *base.rules),
        (*base.endpoints, *(_endpoint(text) for text in endpoints)),
        base.fleet if fleet is None else Fleet.from_toml(fleet),
        (*(Slo.parse(text) for text in slos), *base.slos),
        base.name,
    )


def _target(text: str) -> str:
    """Whose setting it is, in `chat:max_num_seqs=64`; empty: everybody's."""
    return text.partition("=")[0].rpartition(":")[0].strip()


def _targeted(settings: Sequence[str]) -> Iterable[tuple[str, Change]]:
    targets = [_target(text) for text in settings]
    for target in dict.fromkeys(targets):
        if target:
            yield target, change_of(text.removeprefix(f"{target}:") for text in settings if _target(text) == target)


def change_of(settings: Iterable[str]) -> Change:
    """The change that `KEY=VALUE` texts describe; FleetError names a wrong key."""
    section = Section("--set", _values(settings, "--set"))
    change = Change.read(section)
    section.refuse_others()
    return change


def merged_change(base: Change, over: Change) -> Change:
    """Both changes, `over` where they disagree."""
    values = tuple(sorted((dict(base.values) | dict(over.values)).items()))
    scaling = tuple((dict(base.scaling) | dict(over.scaling)).items())
    return Change(values, scaling, base.price if over.price is None else over.price)


def _values(settings: Iterable[str], where: str) -> dict[str, Any]:
    """`key=value` texts, each of which may hold several with commas; hours keep theirs."""
    found: dict[str, Any] = {}
    for text in settings:
        for part in text.split(",") if not text.startswith(("hours=", "weekdays=")) else [text]:
            key, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or not key or not value:
                raise PlanError(f'{where} "{text}": write KEY=VALUE, as max_num_seqs=64')
            found[key] = typed(key, value)
    return found


def _endpoint(text: str) -> Endpoint:
    """Read `NAME:gpu=l40s,model=llama-3-8b,price=0.99`."""
    name, colon, settings = text.partition(":")
    where = f'--endpoint "{text}"'
    if not colon or not name.strip():
        raise PlanError(f"{where}: write NAME:KEY=VALUE,…, as small:gpu=l40s,model=llama-3-8b,price=0.99")
    return read_endpoint(Section(f'--endpoint "{name}"', {"name": name.strip(), **_values([settings], where)}), "UTC")


def read_scenario(path: Path) -> Scenario:
    """The scenario of a TOML file (docs/planning.md has the keys); PlanError names file, section and key."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise PlanError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"{path}: this is not TOML: {error}") from None
    try:
        return _scenario(Section("", document), path)
    except (FleetError, PlanError) as error:
        raise PlanError(f"{path}: {error}") from None


def _scenario(top: Section, path: Path) -> Scenario:
    name, tz, fleet = top.text("name", ""), top.text("tz", "UTC"), top.text("fleet", "")
    table = top.value("set")
    if table is not None and not isinstance(table, dict):
        top.fail("set", "write it as a table, under [set]")
    section = Section("set", dict(table or {}))  # pyright: ignore[reportUnknownArgumentType] -- any TOML table
    change = Change.read(section)
    section.refuse_others()
    scenario = Scenario(
        change,
        tuple(_change_of_engine(each) for each in top.sections("engine", "name")),
        tuple(Rule.read(each) for each in top.sections("route")),
        tuple(read_endpoint(each, tz) for each in top.sections("endpoint", "name")),
        Fleet.from_toml(path.parent / fleet) if fleet else None,
        tuple(_slo(each) for each in top.sections("slo")),
        name,
    )
    top.refuse_others()
    return scenario


def _change_of_engine(section: Section) -> tuple[str, Change]:
    """An `[[engine]]`: the settings of the recorded engines of the endpoint that it names."""
    name, change = section.text("name"), Change.read(section)
    section.refuse_others()
    return name, change


def _slo(section: Section) -> Slo:
    limits = {key: section.text(key) for key in ("ttft", "tpot") if key in section}
    tenant = section.text("tenant", "*")
    section.refuse_others()
    if not limits:
        section.fail("", "it promises nothing: give it ttft or tpot")
    found = {f"{key}_ns": duration_ns(text, f"slo: {key}") for key, text in limits.items()}
    return Slo(tenant, found.get("ttft_ns"), found.get("tpot_ns"))
