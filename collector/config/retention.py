"""How long rows of each table are kept."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .section import Section

Days = Annotated[int | None, Field(ge=1, le=36_500)]


class RetentionConfig(Section):
    """UTC days by table; what is not named stays for good. The ledger always stays: bills come from it."""

    steps: Annotated[Days, Field(description="days of steps, which another --policy needs")] = None
    shares: Annotated[Days, Field(description="days of the cells of steps")] = None
    requests: Annotated[Days, Field(description="days of requests")] = None
    intervals: Annotated[Days, Field(description="days of what metrics pages told")] = None
    gpu: Annotated[Days, Field(description="days of readings of GPUs")] = None
    host: Annotated[Days, Field(description="days of readings of hosts")] = None
