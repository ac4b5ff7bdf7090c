"""The whole file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from .alerts import AlertsConfig
from .retention import RetentionConfig
from .section import Section
from .sources import SourceConfig


class CollectConfig(Section):
    """What one collector does."""

    store: Annotated[Path, Field(description="folder of the store, made when there is none")]
    listen: Annotated[str | None, Field(description="HOST:PORT of the exporter; default: none")] = None
    tenants: Annotated[
        int, Field(ge=1, le=10_000, description="tenants that the exporter names; the rest is other")
    ] = 50
    source: Annotated[tuple[SourceConfig, ...], Field(description="where events come from")] = ()
    retention: Annotated[RetentionConfig | None, Field(description="how long rows are kept; default: for good")] = None
    alerts: Annotated[AlertsConfig | None, Field(description="whom to tell what is wrong")] = None
