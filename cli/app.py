"""`farebox`: the group of all commands, and how their errors reach the user."""

from __future__ import annotations

import errno
import sys
from typing import Any

import click

from ..errors import FareboxError
from ..version import __version__
from ..without_pandas import do_without_pandas
from .advise import advise
from .archive import archive
from .backup import backup
from .budgets import budgets
from .calibrate import calibrate
from .collect import collect
from .database import database
from .demo import demo
from .doctor import doctor
from .explain import explain
from .export import export
from .gpu import gpu
from .hosts import hosts
from .importing import import_files
from .output import forgive_locale
from .prices import prices
from .proxy import proxy
from .query import query
from .rates import rates
from .report import report
from .run import run
from .serve import serve
from .step import step
from .teams import teams
from .tenants import tenants
from .top import top
from .whatif import whatif

INTERRUPTED = 130

EPILOG = """\b
Exit codes
  0    done
  1    something outside is wrong: a store, a disk, another writer
  2    the input cannot be used: a flag, a file, a name
  130  interrupted; everything up to then is kept
"""


class Shown(click.ClickException):
    """A user's error as click shows it: one message and its exit code."""

    def __init__(self, error: FareboxError) -> None:
        super().__init__(str(error))
        self.exit_code = error.exit_code  # pyright: ignore[reportAttributeAccessIssue] -- click declares a class constant


class App(click.Group):
    """Turns errors that the user can act on into one message and an exit code; all others keep their traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which a newcomer needs them."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command named on the command line."""
        try:
            return super().invoke(ctx)
        except FareboxError as error:
            raise Shown(error) from error
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            raise Shown(FareboxError(f"{error.filename or 'standard output'}: {error.strerror}")) from error


@click.group(cls=App, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="farebox")
def app() -> None:
    """Who rides the GPU, what the empty seats cost, and who pays.

    Start with `farebox demo`. Everything here works without a GPU.
    """


COMMANDS = (
    demo,
    run,
    serve,
    proxy,
    collect,
    import_files,
    top,
    report,
    explain,
    whatif,
    advise,
    query,
    export,
    gpu,
    doctor,
    step,
    calibrate,
    rates,
    hosts,
    tenants,
    teams,
    prices,
    budgets,
    archive,
    database,
    backup,
)
for command in COMMANDS:
    app.add_command(command)


def main() -> None:
    """Entry point of the `farebox` script."""
    forgive_locale()
    do_without_pandas()
    app(prog_name="farebox")
    sys.exit(0)
