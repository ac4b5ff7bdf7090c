"""`farebox tenants`: who the tenants are and which team pays for them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError
from . import entering
from .entering import Columns, Values
from .listing import print_records, print_table, when
from .options import (
    AmountType,
    NameType,
    amount,
    checked_name,
    file_argument,
    from_option,
    json_option,
    named_tenant_argument,
    replace_option,
    store_argument,
    to_option,
    tz_option,
)
from .tenant_keys import key

if TYPE_CHECKING:
    from ..events import Tenant
    from ..storage.settings import Settings

EPILOG = """\b
Examples
  farebox tenants set STORE chat --name "Support chat" --team support --cost-centre 4711 --reserve 0.25
  farebox tenants set STORE chat --team success --from 2026-07-01          (moves; history stays with support)
  farebox tenants set STORE chat --name "Help desk" --from 2026-08-01      (a new name, "formerly Support chat")
  farebox tenants import STORE tenants.csv      (tenant, name, team, cost_centre, reserve, from, to)
  farebox tenants end STORE chat --at 2026-10-01
  farebox tenants erase STORE chat
  farebox tenants key add STORE chat < key.txt
"""
COLUMNS = Columns(("tenant",), ("name", "team", "cost_centre", "reserve", "from", "to"))
tenant_argument = click.argument("tenant_id", metavar="TENANT")


@click.group(epilog=EPILOG, short_help="Say who the tenants are and who pays.")
def tenants() -> None:
    """Say who the tenants are, which team and cost centre pays for them, and which API keys are theirs.

    A move holds from an instant on: what was used before stays with the team that paid then. A tenant's name is only
    what people call it: its history follows. A team gets another name with farebox teams rename.
    """


tenants.add_command(key)


@tenants.command("set", epilog=EPILOG)
@store_argument
@named_tenant_argument
@click.option("--name", type=NameType(), help="What people call it.  [default: as before, or the tenant]")
@click.option("--team", type=NameType(), help='The team that pays; "" for none.  [default: as before]')
@click.option("--cost-centre", type=NameType(), help='Its cost centre; "" for none.  [default: as before]')
@click.option("--reserve", type=AmountType("share", "0.25"), help="GPUs kept for it, to a thousandth.")
@from_option
@to_option
@tz_option
@replace_option
def set_tenant(
    store: Path,
    tenant_id: str,
    name: str | None,
    team: str | None,
    cost_centre: str | None,
    reserve: Decimal | None,
    start: str | None,
    end: str | None,
    tz: str,
    replace: bool,
) -> None:
    """Name a tenant, or say what changes about it; what is not said stays as it was."""
    from ..costing.team_names import TeamNames
    from ..events import TEAM_RENAMES, TENANTS, Tenant

    milligpus = None if reserve is None else _milligpus(reserve)

    def made(settings: Settings) -> Tenant:
        from_ns = entering.start_ns(settings, TENANTS, (tenant_id,), start, tz)
        rows = [row for row in settings.all(TENANTS) if row.tenant_id == tenant_id and row.from_ns <= from_ns]
        before: Tenant = rows[-1] if rows else Tenant(tenant_id, tenant_id, None, None, None, 0, None)
        names = TeamNames(settings.all(TEAM_RENAMES))
        stays = before.team and names.at(before.team, before.from_ns, from_ns)
        return Tenant(
            tenant_id,
            before.name if name is None else name,
            stays if team is None else team.strip() or None,
            before.cost_centre if cost_centre is None else cost_centre.strip() or None,
            before.reserved_milligpus if milligpus is None else milligpus,
            from_ns,
            entering.end_ns(end, tz),
        )

    row = entering.enter(store, TENANTS, made, replace=replace)
    _note_renamed(store, row)
    click.echo(f"{tenant_id}: {row.name}, {_payer(row)}, since {when(row.from_ns)}")


@tenants.command("list", epilog=EPILOG)
@store_argument
@json_option
def list_tenants(store: Path, as_json: bool) -> None:
    """List what is known about tenants, with their history."""
    from ..events import TENANTS
    from ..storage.store import open_store

    with open_store(store) as opened:
        found: list[Tenant] = opened.settings(TENANTS)
    if as_json:
        print_records(found)
        return
    rows = [
        (t.tenant_id, t.name, t.team or "–", t.cost_centre or "–", _gpus(t), when(t.from_ns), when(t.to_ns, "open"))
        for t in found
    ]
    head = ("tenant", "name", "team", "cost centre", "reserved GPUs", "from", "to")
    print_table(head, rows, "no tenant is named: reports use the names that engines tell")


@tenants.command("end", epilog=EPILOG)
@store_argument
@tenant_argument
@click.option("--at", required=True, metavar="TIME", help="The first instant at which it is gone.")
@tz_option
def end_tenant(store: Path, tenant_id: str, at: str, tz: str) -> None:
    """Say that a tenant is gone; it stays in the reports of its time."""
    from ..events import TENANTS

    entering.end(store, TENANTS, (tenant_id,), at, tz)


@tenants.command("erase", epilog=EPILOG)
@store_argument
@tenant_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
def erase_tenant(store: Path, tenant_id: str, yes: bool) -> None:
    """Remove a tenant's request rows for good, from the hot store and from the archive.

    Steps, shares and the ledger hold sums only and stay, so every bill stays as it is. It cannot be undone.
    """
    from ..storage.store import create_store

    if not yes:
        click.confirm(f"Remove all requests of {tenant_id} from {store} for good?", abort=True, err=True)
    with create_store(store, make=False) as opened:
        erased = opened.erase_requests(tenant_id)
    click.echo(f"{erased} requests of {tenant_id} erased; the sums stay")


@tenants.command("import", epilog=EPILOG)
@store_argument
@file_argument
@replace_option
def import_tenants(store: Path, file: Path, replace: bool) -> None:
    """Import tenants from a CSV file: all of it, or nothing when any row is bad.

    Columns: tenant, and as needed name, team, cost_centre, reserve (GPUs), from (the beginning), to (open). Dates are
    midnights in UTC.
    """
    from ..events import TENANTS

    entering.import_csv(store, TENANTS, file, COLUMNS, _read, replace=replace)


def _read(values: Values) -> list[Tenant]:
    from ..events import Tenant

    tenant_id = entering.needed(values, "tenant")
    for text in (tenant_id, *(values.get(column, "") for column in ("name", "team", "cost_centre"))):
        checked_name(text)
    reserve = None
    if "reserve" in values:
        try:
            reserve = _milligpus(amount(values["reserve"]))
        except ValueError as error:
            raise ValueError(f"reserve {values['reserve']!r} is not a number of GPUs {error}".rstrip()) from None
    name = values.get("name", tenant_id)
    return [
        Tenant(
            tenant_id,
            name,
            values.get("team"),
            values.get("cost_centre"),
            reserve,
            *entering.span_of(values, "from", "to"),
        )
    ]


def _note_renamed(store: Path, row: Tenant) -> None:
    """Say which team is meant where the row's has, or had, another name."""
    from ..costing.team_names import TeamNames
    from ..events import TEAM_RENAMES
    from ..storage.store import open_store

    team = row.team or ""
    with open_store(store) as opened:
        names = TeamNames(opened.settings(TEAM_RENAMES))
    if (now := names.at(team, row.from_ns)) != team:
        click.echo(f"note: {team} is called {now}, and its time is shown there", err=True)
    elif (once := names.at(team, -1)) != team:
        click.echo(f"note: the team that was called {team} is {once} by then: this {team} is another one", err=True)


def _milligpus(gpus: Decimal) -> int:
    thousandths = gpus * 1000
    if thousandths != int(thousandths):
        raise InputError(f"{gpus} GPUs: reservations are kept to a thousandth of a GPU")
    return int(thousandths)


def _gpus(tenant: Tenant) -> str:
    reserved = tenant.reserved_milligpus
    return "–" if reserved is None else f"{Decimal(reserved).scaleb(-3).normalize():f}"


def _payer(tenant: Tenant) -> str:
    team = f"team {tenant.team}" if tenant.team else "no team"
    return f"{team}, cost centre {tenant.cost_centre}" if tenant.cost_centre else team
