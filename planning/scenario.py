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
from .traffic import Recorded


@dataclass(frozen=True)
class Scenario:
    """Recorded engines under `change`, beside further `endpoints` to which `rules` lead; or a `fleet` instead of all.

    Requests that no rule leads elsewhere stay on the engine that they were recorded on.
    """

    change: Change = field(default_factory=Change)
    rules: tuple[Rule, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    fleet: Fleet | None = None
    slos: tuple[Slo, ...] = ()
    name: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return self.change.is_empty and not self.rules and not self.endpoints and self.fleet is None

    def check(self, recorded: Recorded) -> None:
        """Raise PlanError for what cannot be meant: tenants and endpoints that do not exist, or that nobody reaches."""
        for rule in self.rules:
            if not any(rule.when.takes(arrival) for arrival in recorded.arrivals):
                _refuse_rule(rule, recorded)
        for slo in self.slos:
            if not any(slo.binds(tenant) for tenant in recorded.tenants):
                raise PlanError(_no_tenant(slo.tenant, recorded))
        if self.fleet is not None:
            if self.endpoints or not self.change.is_empty or any(rule.endpoint for rule in self.rules):
                raise PlanError("a fleet takes the place of all recorded engines: change it in its own file")
            return
        names = [endpoint.name for endpoint in self.endpoints]
        led = {rule.endpoint for rule in self.rules if rule.endpoint}
        for name in sorted(led - set(names)):
            known = f"there are: {', '.join(names)}" if names else "describe it with --endpoint NAME:gpu=…,model=…"
            raise PlanError(f'there is no endpoint "{name}"; {known}')
        for name in names:
            if name not in led:
                raise PlanError(
                    f'endpoint "{name}" gets no requests: lead some to it with --route CONDITION:endpoint={name}'
                )
        taken = {run.run.engine_id for run in recorded.runs} | {run.run.host for run in recorded.runs}
        for endpoint in self.endpoints:
            if {endpoint.name, *(endpoint.engine_id(n) for n in range(endpoint.replicas))} & taken:
                raise PlanError(f'endpoint "{endpoint.name}" has the name of a recorded engine or host; choose another')


def _refuse_rule(rule: Rule, recorded: Recorded) -> None:
    tenant = rule.when.tenant
    if tenant is not None and "*" not in tenant and tenant not in recorded.tenants:
        raise PlanError(_no_tenant(tenant, recorded))
    raise PlanError(f"a route takes no request of the recorded traffic: {_conditions(rule)}")


def _conditions(rule: Rule) -> str:
    least, most = rule.when.prompt_tokens
    tokens = "" if (least, most) == (1, None) else f"prompt_tokens {least}-{'' if most is None else most}"
    return ", ".join(filter(None, (rule.when.tenant and f"tenant={rule.when.tenant}", rule.when.tier, tokens)))


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
    change = merged_change(base.change, change_of(settings)) if settings else base.change
    return Scenario(
        change,
        (*(Rule.parse(text) for text in routes), *base.rules),
        (*base.endpoints, *(_endpoint(text) for text in endpoints)),
        base.fleet if fleet is None else Fleet.from_toml(fleet),
        (*(Slo.parse(text) for text in slos), *base.slos),
        base.name,
    )


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
        tuple(Rule.read(each) for each in top.sections("route")),
        tuple(read_endpoint(each, tz) for each in top.sections("endpoint", "name")),
        Fleet.from_toml(path.parent / fleet) if fleet else None,
        tuple(_slo(each) for each in top.sections("slo")),
        name,
    )
    top.refuse_others()
    return scenario


def _slo(section: Section) -> Slo:
    limits = {key: section.text(key) for key in ("ttft", "tpot") if key in section}
    tenant = section.text("tenant", "*")
    section.refuse_others()
    if not limits:
        section.fail("", "it promises nothing: give it ttft or tpot")
    found = {f"{key}_ns": duration_ns(text, f"slo: {key}") for key, text in limits.items()}
    return Slo(tenant, found.get("ttft_ns"), found.get("tpot_ns"))
