"""A section of the file: fields that are known, and no others."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Keys are those of the fields; one that is none of them is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
