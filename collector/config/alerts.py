"""Who is told when something is wrong, and what counts as that."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .section import Section

RuleKind = Literal["source-down", "idle", "unobserved", "budget", "preemptions", "kv-full", "spinning"]


class RuleConfig(Section):
    """One thing to watch. `above` and `seconds` have defaults that suit most."""

    kind: Annotated[RuleKind, Field(description="what is watched")]
    above: Annotated[
        float | None,
        Field(
            ge=0, description="idle, unobserved, spinning, kv-full: a part from 0 to 1; preemptions: how many a second"
        ),
    ] = None
    seconds: Annotated[float | None, Field(ge=0, description="how long it must last")] = None
    engine: Annotated[str | None, Field(description="only this engine; default: all")] = None


class AlertsConfig(Section):
    """Where alerts are sent, as JSON by POST."""

    webhook: Annotated[str | None, Field(description="address, if it is no secret")] = None
    webhook_env: Annotated[str | None, Field(description="variable with the address")] = None
    token_env: Annotated[str | None, Field(description="variable with a bearer token for it")] = None
    rule: Annotated[tuple[RuleConfig, ...], Field(description="what to watch")] = ()
