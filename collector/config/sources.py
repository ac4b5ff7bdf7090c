"""The sources that a file may name, each with all of its keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from .section import Section


class PageConfig(Section):
    """A page that is read again and again: where it is, and how it is reached."""

    url: str
    host: str | None = None
    interval: Annotated[float, Field(ge=1, le=3600, description="seconds between two looks at the page")] = 5.0
    timeout: Annotated[float, Field(gt=0, le=300, description="seconds that the page may take")] = 10.0
    token_env: Annotated[str | None, Field(description="variable with the bearer token")] = None
    token_file: Annotated[Path | None, Field(description="file with the bearer token")] = None
    ca: Annotated[Path | None, Field(description="certificates that the server's is checked by")] = None


class ScrapeConfig(PageConfig):
    """An engine whose metrics page is read."""

    kind: Literal["scrape"]
    url: Annotated[str, Field(description="its address: http://HOST:PORT, with the path where it is not /metrics")]
    engine: Annotated[str | None, Field(description="name of the engine in records; default: host and port")] = None
    host: Annotated[str | None, Field(description="host that pays for the GPUs; default: that of the address")] = None
    gpu: Annotated[str | None, Field(description="GPU type; without it there is no price by type")] = None
    gpus: Annotated[int | None, Field(gt=0, description="GPUs of the engine, all of its replicas together")] = None
    model: Annotated[str | None, Field(description="model, where the page has another name for it")] = None
    weights: Annotated[
        Literal["bf16", "fp8", "int8", "int4"], Field(description="weight format, for estimates of busy time")
    ] = "bf16"
    seats: Annotated[int | None, Field(gt=0, description="the most sequences that one step may run")] = None
    tenant: Annotated[str | None, Field(description="whose work it is, where no proxy tells; default: unknown")] = None


class SpoolConfig(Section):
    """A folder of spools, beside the store's own, which is always read."""

    kind: Literal["spool"]
    path: Annotated[Path, Field(description="the folder in which writers make theirs")]


class NvmlConfig(Section):
    """The GPUs and the host that the collector runs on."""

    kind: Literal["nvml"]


class DcgmConfig(PageConfig):
    """GPUs whose readings are on the page of NVIDIA's DCGM exporter."""

    kind: Literal["dcgm"]
    url: Annotated[str, Field(description="its address: http://HOST:9400, with the path where it is not /metrics")]
    host: Annotated[str | None, Field(description="host of the GPUs; default: as the page says, else the address")] = (
        None
    )


class OtlpConfig(Section):
    """Spans of requests, sent over OTLP/HTTP."""

    kind: Literal["otlp"]
    listen: Annotated[str, Field(description="HOST:PORT to listen on")] = "127.0.0.1:4318"
    engine: Annotated[str | None, Field(description="engine of spans that do not name one")] = None


SourceConfig = Annotated[ScrapeConfig | SpoolConfig | NvmlConfig | DcgmConfig | OtlpConfig, Field(discriminator="kind")]
