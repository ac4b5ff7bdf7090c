"""Names of GPUs and models as runs spell them."""

from __future__ import annotations

import click


def gpu_type(text: str) -> str:
    """The catalogue's name of a GPU type (`h100` is `h100_sxm`); another one stays as it is, with a word about it."""
    from ..roofline import SpecError, gpu

    try:
        return gpu(text).name
    except SpecError as error:
        click.echo(f"note: {error} Kept as {text!r}, which counts for runs that spell it so.", err=True)
        return text


def model_name(text: str) -> str:
    """The catalogue's name of a model; another one stays as it is."""
    from ..roofline import SpecError, model

    try:
        return model(text).name
    except SpecError:
        return text
