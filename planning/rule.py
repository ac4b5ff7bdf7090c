"""Rules: which requests go elsewhere, ride in another tier, or are asked to be shorter."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from ..engine.arrival import Arrival
from ..engine.fleet.route import ANY_LENGTH, TIERS, Route, lengths
from ..engine.fleet.section import Section
from ..events import Tier
from .errors import PlanError

ACTIONS = ("tier", "endpoint", "max_tokens", "shorten_prompts")
EXAMPLES = "tenant=voice:tier=standard, prompt_tokens<500:endpoint=small or *:max_tokens=256"


@dataclass(frozen=True)
class Rule:
    """Requests that meet the conditions of `when`, as they were recorded, get what is not None."""

    when: Route
    endpoint: str | None = None
    tier: Tier | None = None
    max_tokens: int | None = None
    """The most output tokens that may be asked for."""
    shorten_prompts: Decimal | None = None
    """Part of each prompt that is left out, above 0 and below 1."""

    @property
    def conditions(self) -> str:
        """Its conditions in words; empty: none."""
        least, most = self.when.prompt_tokens
        tokens = "" if (least, most) == ANY_LENGTH else f"prompt_tokens {least}-{'' if most is None else most}"
        named = (self.when.tenant and f"tenant={self.when.tenant}", self.when.tier and f"tier={self.when.tier}", tokens)
        return ", ".join(filter(None, named))

    @classmethod
    def read(cls, section: Section) -> Rule:
        """A `[[route]]` of a scenario: conditions `tenant`, `of_tier`, `prompt_tokens`, and one action or more."""
        tier, of_tier = section.text("tier", ""), section.text("of_tier", "")
        for key, name in (("tier", tier), ("of_tier", of_tier)):
            if name and name not in TIERS:
                section.fail(key, f'"{name}" is not one of {", ".join(TIERS)}')
        with section.reading("prompt_tokens"):
            prompt = lengths(section.text("prompt_tokens")) if "prompt_tokens" in section else ANY_LENGTH
        most = section.whole("max_tokens") if "max_tokens" in section else None
        if most is not None and most < 1:
            section.fail("max_tokens", "it must be at least 1")
        rule = cls(
            Route("", cast(Any, of_tier or None), section.text("tenant", "") or None, prompt),
            section.text("endpoint", "") or None,
            cast(Any, tier or None),
            most,
            _share(section),
        )
        section.refuse_others()
        if not any((rule.endpoint, rule.tier, rule.max_tokens, rule.shorten_prompts)):
            section.fail("", f"it changes nothing: give it one of {', '.join(ACTIONS)}")
        return rule

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read `CONDITIONS:ACTIONS`, as `tenant=voice:tier=standard`; `*` stands for no condition."""
        where = f'--route "{text}"'
        conditions, colon, actions = text.rpartition(":")
        if not colon:
            raise PlanError(f"{where}: write CONDITION:ACTION, as {EXAMPLES}")
        values: dict[str, Any] = {}
        for part in conditions.split(","):
            values |= _condition(part.strip(), where)
        for part in actions.split(","):
            key, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or key not in ACTIONS:
                raise PlanError(f'{where}: "{part}" is no action; write one of {", ".join(ACTIONS)}, as {EXAMPLES}')
            values[key] = int(value) if key == "max_tokens" and value.isdigit() else value
        return cls.read(Section(where, values))


def _condition(part: str, where: str) -> dict[str, Any]:
    if part == "*":
        return {}
    for sign in ("<", ">"):
        if part.startswith(f"prompt_tokens{sign}"):
            return {"prompt_tokens": part.removeprefix("prompt_tokens")}
    key, equals, value = (piece.strip() for piece in part.partition("="))
    if not equals or not value or key not in ("tenant", "tier", "prompt_tokens"):
        raise PlanError(f'{where}: "{part}" is no condition; write tenant=, tier=, prompt_tokens< or *, as {EXAMPLES}')
    return {"of_tier" if key == "tier" else key: value}


def _share(section: Section) -> Decimal | None:
    return section.decimal(
        "shorten_prompts", lambda share: 0 < share < 1, 'is not a share above 0 and below 1; write it as "0.2"'
    )


def ruled(arrival: Arrival, rules: tuple[Rule, ...], prefix_block_tokens: int) -> tuple[Arrival, str | None]:
    """The request under the rules, and the endpoint it goes to; None: the one that it was recorded on.

    For each action the first rule that takes the request as it was recorded decides.
    """
    endpoint: str | None = None
    tier: Tier | None = None
    most: int | None = None
    share: Decimal | None = None
    for rule in rules:
        if rule.when.takes(arrival):
            endpoint, tier = endpoint or rule.endpoint, tier or rule.tier
            most, share = most or rule.max_tokens, share or rule.shorten_prompts
    if tier is not None:
        arrival = arrival._replace(tier=tier)
    if most is not None:
        arrival = arrival._replace(max_tokens=most if arrival.max_tokens is None else min(most, arrival.max_tokens))
    if share is not None:
        arrival = _shortened(arrival, share, prefix_block_tokens)
    return arrival, endpoint


def _shortened(arrival: Arrival, share: Decimal, prefix_block_tokens: int) -> Arrival:
    """The request with the end of its prompt left out: what prompts share is at their beginning."""
    tokens = max(1, arrival.prompt_tokens - int(arrival.prompt_tokens * share))
    ids = arrival.prefix_ids
    kept = None if ids is None else ids[: -(-tokens // prefix_block_tokens)]
    return arrival._replace(prompt_tokens=tokens, prefix_ids=kept)
