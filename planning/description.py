"""A scenario in words: what is changed, a sentence per change."""

from __future__ import annotations

from ..engine.fleet import Endpoint
from .change import Change
from .rule import Rule
from .scenario import Scenario
from .slo import Slo
from .words import wait_text


def changes_of(scenario: Scenario) -> list[str]:
    """What a scenario changes, in the words of scenario files; empty: nothing."""
    found = [f"all engines: {text}"] if (text := _change(scenario.change)) else []
    found += [f"{name}: {text}" for name, change in scenario.targeted if (text := _change(change))]
    found += [_rule(rule) for rule in scenario.rules]
    found += [f"new endpoint {_endpoint(endpoint)}" for endpoint in scenario.endpoints]
    if scenario.fleet is not None:
        found.append("a fleet in the place of all engines: " + "; ".join(map(_endpoint, scenario.fleet.endpoints)))
    return found


def promises_of(scenario: Scenario) -> list[str]:
    """What is promised to whom."""
    return [_promise(slo) for slo in scenario.slos]


def _change(change: Change) -> str:
    values = [f"{name}={_value(value)}" for name, value in (*change.values, *change.scaling)]
    return ", ".join([*values, *([] if change.price is None else [f"price={change.price:f}"])])


def _value(value: object) -> str:
    return "off" if value is None or value is False else "on" if value is True else str(value)


def _rule(rule: Rule) -> str:
    limit, share = rule.max_tokens, rule.shorten_prompts
    actions = [
        "" if rule.endpoint is None else f"to {rule.endpoint}",
        "" if rule.tier is None else f"tier {rule.tier}",
        "" if limit is None else f"at most {limit:,} output tokens",
        "" if share is None else f"a share of {share:f} left out of prompts",
    ]
    return f"requests of {rule.conditions or 'everybody'}: {', '.join(filter(None, actions))}"


def _endpoint(endpoint: Endpoint) -> str:
    engine, price = endpoint.engine, endpoint.price
    paid = "" if price is None else f", {price:f} {endpoint.currency} per GPU-hour"
    return f"{endpoint.name}: {endpoint.replicas} × {engine.model} on {engine.gpus}×{engine.gpu_type}{paid}"


def _promise(slo: Slo) -> str:
    limits = (("TTFT", slo.ttft_ns), ("TPOT", slo.tpot_ns))
    told = " and ".join(f"{name} within {wait_text(ns)}" for name, ns in limits if ns is not None)
    return f"promised to {'everybody' if slo.tenant == '*' else slo.tenant}: {told}"
