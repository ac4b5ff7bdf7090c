"""Teams: who pays at which minute, and what renamed, moved and deleted ones are called."""

import pytest
from costing_books import DAY, HOUR, books_of, line, minutes, rate, tenant

from farebox.costing.report import build_report
from farebox.costing.team_names import TeamNames
from farebox.costing.teams import Register, TenantError
from farebox.events import TeamRename


def by_team(lines, tenants, by=("team",)):
    report = build_report(books_of(lines, rates=[rate("6")], tenants=tenants), by=by)
    return {x.keys: x.amount_micro for x in report.lines if x.account == "tenant"}


def test_a_minute_is_paid_by_the_team_at_that_minute():
    rows = [tenant("A", "x", 0, HOUR // 2), tenant("A", "y", HOUR // 2), tenant("B", "x")]
    lines = [*minutes("tenant", "A", 0, HOUR), *minutes("tenant", "B", 0, HOUR, engine_id="f")]
    assert by_team(lines, rows) == {("x",): 9_000_000, ("y",): 3_000_000}


def test_a_move_within_a_day_changes_no_tenants_amount():
    moved = [tenant("A", "x", 0, HOUR // 3), tenant("A", "y", HOUR // 3)]
    lines = [line("tenant", "A", 7 * 10**9 + n, n * HOUR // 60) for n in range(60)]
    whole = by_team(lines, [], ("tenant",))[("A",)]
    assert sum(by_team(lines, moved).values()) == whole


def test_time_before_a_tenant_had_a_row_is_unattributed():
    assert by_team(minutes("tenant", "A", 0, HOUR), [tenant("A", "x", HOUR // 2)]) == {
        ("unattributed",): 3_000_000,
        ("x",): 3_000_000,
    }
    assert by_team(minutes("tenant", "A", 0, HOUR), [tenant("A", "x", 0, HOUR // 2)], ("cost_centre",)) == {
        ("unattributed",): 6_000_000
    }


def renamed(team, name, at_ns):
    return TeamRename(team, name, at_ns, 0)


def test_a_renamed_team_keeps_its_old_time_under_its_new_name():
    rows = [tenant("A", "old"), tenant("B", "old", 0, DAY), tenant("C", "new", 3 * DAY)]
    register = Register(rows, [renamed("old", "new", 2 * DAY)])
    assert register.teams() == ["new", "new", "new", "unattributed"]
    assert register.team_labels() == {"new": "new (formerly old)"}


@pytest.mark.parametrize(
    "rows",
    [
        [tenant("A", "x", 0, DAY), tenant("A", "y", DAY), tenant("B", "x")],
        [tenant("A", "x", 0, DAY), tenant("A", "y", DAY), tenant("B", "x", 0, DAY), tenant("B", "y", DAY)],
        [tenant("A", "x", 0, DAY), tenant("A", "y", 2 * DAY)],
        [tenant("A", "x", 0, DAY), tenant("A", None, DAY)],
    ],
)
def test_tenants_that_move_rename_no_team_however_many_they_are(rows):
    register = Register(rows)
    assert register.team_labels() == {}
    assert register.teams()[0] == "x"


def test_a_reorganisation_moves_no_history_into_the_new_team():
    rows = [tenant(name, *move) for name in "AB" for move in (("x", 0, HOUR // 2), ("y", HOUR // 2))]
    lines = [*minutes("tenant", "A", 0, HOUR), *minutes("tenant", "B", 0, HOUR, engine_id="f")]
    assert by_team(lines, rows) == {("x",): 6_000_000, ("y",): 6_000_000}


def test_a_name_that_a_team_gave_up_can_be_another_teams():
    rows = [tenant("A", "x"), tenant("B", "x", 2 * DAY), tenant("C", "y", 0, DAY)]
    register = Register(rows, [renamed("x", "z", DAY), renamed("z", "w", 3 * DAY)])
    assert register.teams()[:-1] == ["w", "x", "y"]
    assert register.team_labels() == {"w": "w (formerly z, x)"}
    assert register.names.at("x", 0, 2 * DAY) == "z"


def test_a_name_that_comes_back_is_no_former_one():
    names = TeamNames([renamed("x", "y", DAY), renamed("y", "x", 2 * DAY)])
    assert (names.at("x", 0), names.at("x", 0, DAY), names.at("x", DAY)) == ("x", "y", "x")
    assert names.former() == {"x": ["y"]}


def test_tenants_show_their_newest_name_and_that_they_are_gone():
    rows = [tenant("A", "x", 0, DAY, "Search"), tenant("A", "x", DAY, 2 * DAY, "Discovery")]
    assert Register(rows).tenant_labels(2 * DAY) == {"A": "Discovery (formerly Search) (deleted)"}
    assert Register(rows).tenant_labels(DAY) == {"A": "Discovery (formerly Search)"}
    assert Register([tenant("A")]).tenant_labels(DAY) == {}


def test_a_tenant_with_two_teams_at_once_is_refused():
    with pytest.raises(TenantError, match="two rows of tenant A"):
        Register([tenant("A", "x", 0), tenant("A", "y", DAY)])
