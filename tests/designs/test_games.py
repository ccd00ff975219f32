"""A gaming service: users, games, who plays in which, a leaderboard, and games that are open to join.

    PK         SK              map     mode   opened       score  season
    USER#ann   #METADATA#ann
    GAME#g1    #METADATA#g1    desert  duel   2026-05-01
    GAME#g1    USER#ann                                    70     s1

The inverted index has SK and PK as its keys, so that it finds the games of a user. OpenGames is sparse: a game has
`opened` only until it starts. ByMap has two attributes in each key, and Leaders sorts by a number.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from adjoin import AdjacencyList, AlreadyExists, ConditionFailed, Edge, Graph, Index, Keys, Node, field
from adjoin.values import Item
from tests.designs.table_of_items import STORES, asked, at, filled, in_order, item, others, rewritten, stored
from tests.servers.open import Stores


class User(Node):
    id: str
    name: str
    rating: int = 1000


class Game(Node):
    id: str
    title: str
    map: str
    mode: str
    people: int = 0
    opened: dt.date | None = None


class Plays(Edge[Game, User]):
    season: str
    score: int | None = None
    place: str | None = None


LAYOUT = AdjacencyList(
    table="Games",
    reverse=Index("Inverted", "SK", "PK"),
    indexes=[
        Index("OpenGames", "map", "opened"),
        Index("ByMap", ("title", "map"), ("mode", "opened")),
        Index("Leaders", "season", "score"),
    ],
    keys={
        User: Keys(partition="USER#{id}", sort="#METADATA#{id}"),
        Game: Keys(partition="GAME#{id}", sort="#METADATA#{id}"),
        Plays: Keys(partition="GAME#{source.id}", sort="USER#{target.id}"),
    },
)
MODELS: list[Any] = [User, Game, Plays]


def game(id: str, title: str, map: str, mode: str, day: int | None = None, people: int = 1) -> Item:
    values: dict[str, Any] = {"title": title, "map": map, "mode": mode, "people": people}
    if day is not None:
        values["opened"] = f"2026-05-{day:02}"
    return item(f"GAME#{id}", f"#METADATA#{id}", **values)


def plays(game: str, user: str, season: str, score: int | None = None) -> Item:
    values = {"season": season} | ({} if score is None else {"score": score})
    return item(f"GAME#{game}", f"USER#{user}", **values)


KNOWN = [
    *(item(f"USER#{id}", f"#METADATA#{id}", name=id.title(), rating=1000 + len(id)) for id in ("ann", "bob", "carla")),
    game("g1", "tanks", "desert", "duel", 1),
    game("g2", "tanks", "desert", "team", 4),
    game("g3", "tanks", "desert", "duel", 3),
    game("g4", "tanks", "desert", "duel", None, 50),
    game("g5", "chess", "desert", "duel", 2),
    game("g6", "tanks", "island", "duel", 2),
    plays("g1", "ann", "s1", 70),
    plays("g1", "bob", "s1", 9),
    plays("g2", "ann", "s1", 100),
    plays("g4", "ann", "s2", -5),
    plays("g4", "bob", "s2", 12),
    plays("g4", "carla", "s2"),
]
OTHERS = [
    item("GAME#g1", "CHAT#2026-05-01T10:00:00", text="hello"),
    item("USER#ann", "#METADATA#bob", name="keys of two users"),
]
DESERT = field("map") == "desert"
TANKS = (field("title") == "tanks") & DESERT


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, [*KNOWN, *OTHERS]) as graph:
        yield graph


def ids(found: Iterable[Game]) -> list[str]:
    return [each.id for each in found]


def test_the_table_is_what_adjoin_would_have_written(g: Graph) -> None:
    assert rewritten(g) == stored(g) == in_order([*KNOWN, *OTHERS])
    assert others(g) == OTHERS


def test_a_game_and_its_players(g: Graph) -> None:
    around = g.collection(Game.ref("g1"))
    node = asked(g, lambda: around.node, 1)
    assert node == Game(id="g1", title="tanks", map="desert", mode="duel", people=1, opened=dt.date(2026, 5, 1))
    assert [edge.target for edge in around.edges] == ["ann", "bob"]
    assert [each["SK"] for each in around.others] == ["CHAT#2026-05-01T10:00:00"]
    assert [edge.target for edge in asked(g, lambda: list(g.out(Game.ref("g4"), Plays)), 1)] == ["ann", "bob", "carla"]
    assert [user.rating for _, user in asked(g, lambda: list(g.out("g1", Plays).nodes()), 2)] == [1003, 1003]


def test_the_games_of_a_user(g: Graph) -> None:
    assert [edge.source for edge in asked(g, lambda: list(g.into("ann", Plays)), 1)] == ["g1", "g2", "g4"]
    assert [game.title for _, game in asked(g, lambda: list(g.into("bob", Plays).nodes()), 2)] == ["tanks", "tanks"]
    last = asked(g, lambda: list(g.into("ann", Plays).reverse().limit(1)), 1)
    assert [edge.source for edge in last] == ["g4"]


def test_open_games_of_a_map(g: Graph) -> None:
    found = asked(g, lambda: list(g.find(Game, DESERT, order="opened")), 1)
    assert ids(found) == ["g1", "g5", "g3", "g2"]
    since = DESERT & (field("opened") >= dt.date(2026, 5, 3))
    assert ids(asked(g, lambda: list(g.find(Game, since)), 1)) == ["g3", "g2"]
    assert ids(g.find(Game, DESERT & field("opened").exists())) == ["g1", "g5", "g3", "g2"]
    assert ids(g.find(Game, DESERT & (field("people") < 50), index="OpenGames").reverse()) == ["g2", "g3", "g5", "g1"]


def test_games_by_several_attributes(g: Graph) -> None:
    assert ids(asked(g, lambda: list(g.find(Game, TANKS)), 1)) == ["g1", "g3", "g2"]
    duels = TANKS & (field("mode") == "duel")
    assert ids(asked(g, lambda: list(g.find(Game, duels)), 1)) == ["g1", "g3"]
    late = duels & (field("opened") > dt.date(2026, 5, 1))
    assert ids(asked(g, lambda: list(g.find(Game, late)), 1)) == ["g3"]
    assert ids(asked(g, lambda: list(g.index("ByMap").partition("tanks", "island")), 1)) == ["g6"]
    both = field("title").is_in(["tanks", "chess"]) & DESERT & (field("mode") == "duel")
    assert ids(asked(g, lambda: list(g.find(Game, both, order="opened", index="ByMap")), 2)) == ["g1", "g5", "g3"]


def test_the_leaderboard(g: Graph) -> None:
    leaders = g.find(Plays, field("season") == "s1", order="score").reverse()
    top = asked(g, lambda: list(leaders.limit(2)), 1)
    assert [(edge.source, edge.target, edge.score) for edge in top] == [("g2", "ann", 100), ("g1", "ann", 70)]
    assert [edge.score for edge in g.find(Plays, field("season") == "s2", order="score")] == [-5, 12]
    good = (field("season") == "s1") & (field("score") >= 50)
    assert [edge.score for edge in asked(g, lambda: list(g.find(Plays, good)), 1)] == [70, 100]
    page = asked(g, lambda: leaders.page(limit=2), 1)
    assert [edge.score for edge in leaders.page(limit=2, after=page.next)] == [9]


def test_somebody_joins_a_game(g: Graph) -> None:
    """The user is added and the game counts one more, unless it is full or the user is in it already."""
    with g.transaction() as t:
        t.connect(Plays, "g1", "carla", season="s1")
        t.update(Game, "g1", people=field("people") + 1)
    assert at(g, "GAME#g1", "USER#carla") == plays("g1", "carla", "s1")
    assert at(g, "GAME#g1", "#METADATA#g1") == game("g1", "tanks", "desert", "duel", 1, 2)
    with pytest.raises(AlreadyExists):
        g.add(Plays(source="g1", target="carla", season="s1"))
    with pytest.raises(ConditionFailed):
        g.update(Game, "g4", people=field("people") + 1, only_if=field("people") < 50)


def test_a_game_starts_and_ends(g: Graph) -> None:
    asked(g, lambda: g.update(Game, "g1", opened=None), 1)
    assert at(g, "GAME#g1", "#METADATA#g1") == game("g1", "tanks", "desert", "duel")
    assert ids(g.find(Game, DESERT, order="opened")) == ["g5", "g3", "g2"]
    asked(g, lambda: g.update(Plays, "g4", "carla", score=30), 1)
    assert at(g, "GAME#g4", "USER#carla") == plays("g4", "carla", "s2", 30)
    asked(g, lambda: g.update(Plays, "g4", "carla", score=field("score") + 5), 1)
    assert [edge.score for edge in g.find(Plays, field("season") == "s2", order="score")] == [-5, 12, 35]


def test_what_is_put_and_deleted(g: Graph) -> None:
    before = stored(g)
    g.put(Game(id="g7", title="chess", map="island", mode="team", people=1, opened=dt.date(2026, 5, 9)))
    g.put(User(id="dan", name="Dan", rating=1003))
    g.connect(Plays, "g7", "dan", season="s2", score=1)
    made = [game("g7", "chess", "island", "team", 9), item("USER#dan", "#METADATA#dan", name="Dan", rating=1003)]
    assert stored(g) == in_order([*before, *made, plays("g7", "dan", "s2", 1)])
    assert g.delete(Game, "g7")
    assert g.delete(User, "dan")
    assert stored(g) == before
    g.delete(User, "ann")
    left = [each for each in before if "ann" not in each["SK"]["S"]]
    assert stored(g) == left
    # What adjoin does not know stays.
    assert others(g) == OTHERS
