"""A football league: teams and players, seasons with standings and matches, goals, and who played in a match.

    pk                   sk                               g1pk                g1sk          standing  points
    LEAGUE#epl           TEAM#ars
    LEAGUE#epl#TEAM#ars  PLAYER#09
    LEAGUE#epl#25        STANDING#ars                                                       epl#25    60
    LEAGUE#epl#25        MATCH#2026-03-01T15:00:00Z#01
    LEAGUE#epl#25        MATCH#2026-…#01#GOAL#012.01
    LEAGUE#epl#25        MATCH#2026-…#01#TEAM#ars         LEAGUE#epl#TEAM#ars  25#2026-03-…

A match and its teams are of one league, which the keys of who played name once: the index key has the team whole.
Running matches are in a sparse index over plain attributes, and scorers in one with two attributes in each key.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from adjoin import (
    AdjacencyList,
    AlreadyExists,
    Child,
    Edge,
    Graph,
    Index,
    InvalidModel,
    Keys,
    Node,
    NotFound,
    Projection,
    field,
)
from adjoin.requests import PageResponse, Scan
from tests.designs.table_of_others import STORES, asked, filled, item, stored
from tests.servers.open import Stores


class Team(Node, key=("league", "slug")):
    league: str
    slug: str
    name: str


class Player(Node, key=("league", "team", "number")):
    league: str
    team: str
    number: int
    name: str
    season: str | None = None
    goals: int = 0


class Standing(Node, key=("league", "season", "slug")):
    league: str
    season: str
    slug: str
    points: int


class Match(Node, key=("league", "season", "start", "id")):
    league: str
    season: str
    start: dt.datetime
    id: int
    home_goals: int = 0
    away_goals: int = 0
    running: int | None = None


class Goal(Child[Match], key=("minute", "number")):
    minute: int
    number: int
    scorer: str


class Plays(Edge[Match, Team], key=("target.slug",)):
    side: Literal["home", "away"]


MODELS: list[Any] = [Team, Player, Standing, Match, Goal, Plays]
SECONDS = "%Y-%m-%dT%H:%M:%SZ"
OF_TEAM = ("LEAGUE#{target.league}#TEAM#{target.slug}", f"{{source.season}}#{{source.start:{SECONDS}}}")
LAYOUT = AdjacencyList(
    table="League",
    partition_key="pk",
    sort_key="sk",
    reverse=None,
    indexes=[
        Index("OfTeam", "g1pk", "g1sk"),
        Index("ByPoints", "standing", "points"),
        Index("Running", "running", "start", projection=Projection("INCLUDE", ("home_goals", "away_goals"))),
        Index("Scorers", ("league", "season"), ("goals", "name")),
    ],
    keys={
        Team: Keys(partition="LEAGUE#{league}", sort="TEAM#{slug}"),
        Player: Keys(
            partition="LEAGUE#{league}#TEAM#{team}", sort="PLAYER#{number:02}", attributes={"league": "{league}"}
        ),
        Standing: Keys(
            partition="LEAGUE#{league}#{season}",
            sort="STANDING#{slug}",
            indexes={"ByPoints": "{league}#{season}"},
        ),
        Match: Keys(
            partition="LEAGUE#{league}#{season}",
            sort=f"MATCH#{{start:{SECONDS}}}#{{id:02}}",
            attributes={"start": f"{{start:{SECONDS}}}"},
        ),
        Goal: Keys(sort=f"MATCH#{{parent.start:{SECONDS}}}#{{parent.id:02}}#GOAL#{{minute:03}}.{{number:02}}"),
        Plays: Keys(
            sort=f"MATCH#{{source.start:{SECONDS}}}#{{source.id:02}}#TEAM#{{target.slug}}", indexes={"OfTeam": OF_TEAM}
        ),
    },
)
DAYS = [dt.datetime(2026, 3, day, 15, tzinfo=dt.UTC) for day in (1, 8)]
FIRST, SECOND = (("epl", "25", day, number) for number, day in enumerate(DAYS, 1))
ARSENAL, CHELSEA = ("epl", "ars"), ("epl", "che")


def _plays(match: int, team: str, side: str) -> Any:
    start = f"{DAYS[match - 1]:{SECONDS}}"
    key = {"pk": "LEAGUE#epl#25", "sk": f"MATCH#{start}#{match:02}#TEAM#{team}"}
    return item(**key, g1pk=f"LEAGUE#epl#TEAM#{team}", g1sk=f"25#{start}", side=side)


def _of_match(number: int, more: str = "", **values: Any) -> Any:
    return item(pk="LEAGUE#epl#25", sk=f"MATCH#{DAYS[number - 1]:{SECONDS}}#{number:02}{more}", **values)


ITEMS = [
    *(item(pk="LEAGUE#epl", sk=f"TEAM#{slug}", name=slug.upper(), founded=1886) for slug in ("ars", "che")),
    item(pk="LEAGUE#elc", sk="TEAM#ars", name="Another"),
    *(
        item(pk="LEAGUE#epl#TEAM#ars", sk=f"PLAYER#{n:02}", name=f"p{n}", season="25", goals=n % 5, league="epl")
        for n in range(1, 12)
    ),
    *(
        item(pk="LEAGUE#epl#25", sk=f"STANDING#{slug}", standing="epl#25", points=points)
        for slug, points in (("ars", 60), ("che", 7))
    ),
    _of_match(1, start=f"{DAYS[0]:{SECONDS}}", home_goals=2, away_goals=1),
    _of_match(2, start=f"{DAYS[1]:{SECONDS}}", home_goals=1, away_goals=0, running=1),
    _of_match(1, "#GOAL#012.01", scorer="p9"),
    _of_match(1, "#GOAL#077.01", scorer="p1"),
    _plays(1, "ars", "home"),
    _plays(1, "che", "away"),
    _plays(2, "ars", "home"),
]
OTHERS = [item(pk="LEAGUE#epl#25", sk="REFEREES", names=["a"]), item(pk="LEAGUE#epl", sk="TEAM#a#b", name="x")]


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, [*ITEMS, *OTHERS]) as graph:
        yield graph


def test_each_question_in_its_least_number_of_requests(g: Graph) -> None:
    of_season = (field("league") == "epl") & (field("season") == "25")
    of_team = (field("league") == "epl") & (field("team") == "ars")
    # What is asked, what is shown of the results, and the number of requests.
    questions: list[tuple[Any, str, list[Any], int]] = [
        (g.children(FIRST, Goal), "scorer", ["p9", "p1"], 1),
        (g.children(FIRST, Goal).between(50, None), "scorer", ["p1"], 1),
        (g.out(FIRST, Plays), "target", [ARSENAL, CHELSEA], 1),
        (g.into(ARSENAL, Plays).reverse(), "source", [SECOND, FIRST], 1),
        (g.into(("elc", "ars"), Plays), "source", [], 1),
        (g.find(Standing, of_season, order="points").reverse(), "slug", ["ars", "che"], 1),
        (g.find(Standing, of_season & (field("points") >= 50)), "slug", ["ars"], 1),
        (g.find(Match, of_season & (field("start") > DAYS[0])), "id", [2], 1),
        (g.find(Match, field("running") == 1, order="start"), "id", [2], 1),
        (g.find(Player, of_season & (field("goals") >= 3), order="goals"), "number", [3, 8, 4, 9], 1),
        (g.find(Player, of_team & (field("number") > 9)), "number", [10, 11], 1),
    ]
    for query, name, wanted, requests in questions:
        found, made = asked(g, query)
        assert ([getattr(each, name) for each in found], made) == (wanted, requests), query
        assert query.count() == len(wanted), query
    matches, made = asked(g, g.into(ARSENAL, Plays).begins_with("25").nodes())
    assert [match.id for _, match in matches] == [1, 2]
    assert made == 2
    assert g.get(Goal, (FIRST, 12, 1)) == Goal(parent=FIRST, minute=12, number=1, scorer="p9")
    whole = g.collection(Match.ref(league="epl", season="25", start=DAYS[0], id=1))
    assert (len(whole.edges), len(whole.children), whole.others) == (2, 2, [])


def test_a_team_of_another_league_with_the_same_name_is_another_team(g: Graph) -> None:
    other = ("elc", "ars")
    assert g.edge(Plays, FIRST, ARSENAL) == Plays(source=FIRST, target=ARSENAL, side="home")
    assert g.edge(Plays, FIRST, other) is None
    assert not g.disconnect(Plays, FIRST, other)
    with pytest.raises(NotFound, match="the edge with this key has other ends"):
        g.update(Plays, FIRST, other, side="away")
    with pytest.raises(AlreadyExists):
        g.connect(Plays, FIRST, other, side="home")
    connected = g.connect(Plays, SECOND, CHELSEA, side="away")
    written = stored(g, "LEAGUE#epl#25", f"MATCH#{DAYS[1]:{SECONDS}}#02#TEAM#che")
    assert written is not None
    assert written["g1pk"] == {"S": "LEAGUE#epl#TEAM#che"}
    assert list(g.into(CHELSEA, Plays)) == [
        *[each for each in g.out(FIRST, Plays) if each.target == CHELSEA],
        connected,
    ]
    g.put(Plays(source=SECOND, target=("elc", "che"), side="away"))
    assert [each.target for each in g.out(SECOND, Plays)] == [ARSENAL, ("elc", "che")]


def test_everything_is_counted_stored_back_and_deleted(g: Graph) -> None:
    def scanned() -> list[Any]:
        (page,) = g._store.execute([Scan("League", consistent=True)])
        assert isinstance(page, PageResponse)
        return sorted((dict(each) for each in page.items if "adjoin:declared" not in each), key=repr)

    before = scanned()
    for model in MODELS:
        assert g.count(model) == len(list(g.scan(model)))
    assert sorted(each["sk"] for each in g.scan().others) == ["REFEREES", "TEAM#a#b"]
    g.put_many(list(g.scan()))
    assert scanned() == before
    assert g.update(Match, FIRST, running=1).running == 1
    assert g.find(Match, field("running") == 1).count() == 2
    assert g.delete(Match, FIRST)
    sources: list[Any] = [each.source for each in g.into(ARSENAL, Plays)]
    assert sources == [SECOND]
    assert g.delete(Team, ARSENAL)
    assert (g.count(Plays), g.count(Goal)) == (0, 0)


@pytest.mark.parametrize(
    ("key", "sort", "reason"),
    [
        ((), "M#{source.id}#T#{target.slug}", r"add \{target\} to the template, or say that .* key=\('target.slug',\)"),
        (("target.slog",), "M#{source.id}#T#{target.slug}", r"Played has no part of an id 'target.slog'; did you mean"),
        (("target.slug",), "M#{source.id}#T", r"has the key field 'target.slug', but its sort key .* does not contain"),
        (("target.slug",), "M#{source.id}#T#{target.slug}", None),
    ],
)
def test_what_tells_such_edges_apart_is_declared(key: tuple[str, ...], sort: str, reason: str | None) -> None:
    class Short(Node, key=("league", "id")):
        league: str
        id: str

    class Played(Edge[Short, Team], key=key):
        pass

    keys: dict[type[Any], Keys] = {
        Team: Keys(partition="L#{league}", sort="T#{slug}"),
        Short: Keys(partition="L#{league}", sort="M#{id}"),
        Played: Keys(sort=sort, indexes={"OfTeam": "{target.league}#{target.slug}"}),
    }
    layout = AdjacencyList(reverse=None, indexes=[Index("OfTeam", "g1pk")], keys=keys)
    if reason is None:
        Graph(":memory:", [Team, Short, Played], layout).close()
        return
    with pytest.raises(InvalidModel, match=reason):
        Graph(":memory:", [Team, Short, Played], layout)
