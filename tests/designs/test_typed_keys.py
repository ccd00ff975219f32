"""Tables that other programs made: keys that are numbers or binary, and tables with a partition key only.

    Users      id (N)                     a partition key only, a number
    Files      hash (B)                   a partition key only, binary
    Sessions   token                      a partition key only, text
    Readings   device, at (N)             a sort key that is a number: the second since 1970
    Chunks     file (B), part (B)         two keys that are binary

The store alone fills these tables; then adjoin reads, changes and searches them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    Expires,
    Graph,
    Index,
    Indexed,
    InvalidKey,
    InvalidModel,
    InvalidValue,
    Keys,
    Node,
    TableMismatch,
    Version,
    field,
)
from adjoin.stores.sqlite import SQLiteStore
from tests.designs.table_of_items import STORES, asked
from tests.designs.table_of_others import filled, item, paged, stored
from tests.servers.open import Stores

# --- a partition key only: a number ------------------------------------------------------------


class User(Node):
    id: int
    name: str
    city: str | None = None
    visits: int = 0
    version: Annotated[int, Version()] = 0


USERS = AdjacencyList(
    table="Users",
    partition_key="id",
    sort_key=None,
    types={"id": "N"},
    reverse=None,
    indexes=[Index("ByName", "name"), Index("ByCity", "city", "id")],
)

LARGEST = 10**38 - 1

KNOWN = [
    item(id=1, name="Ann", city="Rome"),
    item(id=10, name="Bob", city="Rome"),
    item(id=9, name="Cid", city="Rome"),
    item(id=-5, name="Dan"),
    item(id=0, name="Eve"),
    item(id=LARGEST, name="Fay"),
    item(id=-LARGEST, name="Gus"),
    item(id=10**40, name="Hal"),
]

FOREIGN = [item(id=Decimal("1.5"), name="half a user"), item(id=7, what="no name")]


@pytest.fixture(params=STORES)
def users(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, [User], USERS, [*KNOWN, FOREIGN[0]]) as g:
        yield g


def test_users_are_found_by_their_number(users: Graph) -> None:
    for known in KNOWN:
        id = int(known["id"]["N"])
        assert asked(users, lambda id=id: users.get(User, id), 1) == User(  # type: ignore[misc]
            id=id, name=known["name"]["S"], city=known["city"]["S"] if "city" in known else None
        )
    assert asked(users, lambda: users.get(User, 2), 1) is None
    many = asked(users, lambda: users.get_many(User, [10, 3, -5]), 1)
    assert [each and each.name for each in many] == ["Bob", None, "Dan"]


def test_users_are_found_by_indexes_and_by_scans(users: Graph) -> None:
    assert [each.id for each in asked(users, lambda: list(users.find(User, field("name") == "Dan")), 1)] == [-5]
    rome = field("city") == "Rome"
    assert [each.id for each in asked(users, lambda: list(users.find(User, rome)), 1)] == [1, 9, 10]
    assert [each.id for each in asked(users, lambda: list(users.find(User, rome & (field("id") > 1))), 1)] == [9, 10]
    assert [each.id for each in users.find(User, rome).reverse()] == [10, 9, 1]
    assert [each.id for each in paged(users.find(User, rome), 2)] == [1, 9, 10]
    assert [each.id for each in asked(users, lambda: list(users.find(User, field("id") == 10)), 1)] == [10]
    assert sorted(each.id for each in users.scan(User)) == sorted(int(each["id"]["N"]) for each in KNOWN)
    assert users.scan(User).count() == len(KNOWN)
    assert len(paged(users.scan(User), 3)) == len(KNOWN)
    assert list(users.scan().others) == [{"id": Decimal("1.5"), "name": "half a user"}]
    assert [each.id for each in users.index("ByCity").partition("Rome").between(2, 9)] == [9]
    with pytest.raises(InvalidValue, match="is a number, which has no prefix"):
        users.index("ByCity").partition("Rome").begins_with(1)  # type: ignore[arg-type]


def test_users_are_written(users: Graph) -> None:
    asked(users, lambda: users.put(User(id=-7, name="Ida")), 1)
    assert stored(users, -7) == item(id=-7, name="Ida", visits=0, version=0)
    asked(users, lambda: users.update(User, 1, visits=field("visits") + 2), 1)
    assert users.get(User, 1) == User(id=1, name="Ann", city="Rome", visits=2, version=1)
    users.put_many([User(id=100 + number, name="many") for number in range(60)])
    assert users.find(User, field("name") == "many").count() == 60
    with users.transaction() as tx:
        tx.put(User(id=200, name="Jo"))
        tx.update(User, 10, city="Oslo")
        tx.delete(User, 9)
    assert [users.get(User, id) is not None for id in (200, 10, 9)] == [True, True, False]
    assert [each.id for each in users.find(User, field("city") == "Oslo")] == [10]
    assert asked(users, lambda: users.delete(User, 10), 1)
    assert stored(users, 10) is None
    assert not users.delete(User, 10)


def test_changes_of_users(users: Graph) -> None:
    users.put(User(id=-7, name="Ida"))
    users.update(User, -7, city="Rome")
    users.delete(User, -7)
    last = [(change.kind, change.new or change.old) for change in users.changes()]
    assert [(kind, user.id) for kind, user in last if isinstance(user, User)][-3:] == [
        ("insert", -7),
        ("modify", -7),
        ("remove", -7),
    ]


@pytest.mark.parametrize("id", [10**38 + 1, 12345678901234567890123456789012345678901, 10**126])
def test_numbers_that_dynamodb_does_not_have_are_refused(id: int) -> None:
    with Graph(":memory:", [User], USERS) as g, pytest.raises(InvalidKey, match=r"User\.id: .*(digits|range)"):
        g.put(User(id=id, name="x"))


# --- a partition key only: binary, and text ----------------------------------------------------


class File(Node):
    id: bytes
    size: int
    until: Annotated[dt.datetime | None, Expires()] = None


FILES = AdjacencyList(
    table="Files",
    partition_key="hash",
    sort_key=None,
    types={"hash": "B"},
    reverse=None,
    indexes=[Index("BySize", "size")],
)

HASHES = [b"\x00", b"\xff\xfe", b"#=", b"plain", bytes(range(256)), bytes(2048)]


@pytest.mark.parametrize("where", STORES)
def test_files_by_their_hash(where: str, servers: Stores) -> None:
    known = [item(hash=each, size=size) for size, each in enumerate(HASHES)]
    with filled(where, servers, [File], FILES, known) as g:
        for size, each in enumerate(HASHES):
            assert g.get(File, each) == File(id=each, size=size)
        assert {each.id for each in g.scan(File)} == {*HASHES}
        assert g.scan(File).count() == len(HASHES)
        assert [each.id for each in g.find(File, field("size") == 2)] == [b"#="]
        assert [each.id for each in paged(g.find(File, field("size").is_in([0, 3])), 1)] == [b"\x00", b"plain"]
        g.put(File(id=b"new", size=9))
        assert stored(g, b"new") == item(hash=b"new", size=9)
        g.update(File, b"new", size=10)
        assert [each and each.size for each in g.get_many(File, [b"new", b"none", b"#="])] == [10, None, 2]
        assert g.delete(File, b"#=")
        assert g.get(File, b"#=") is None
        with pytest.raises(InvalidKey, match=r"File\.id is empty, but an id in a key needs at least one character"):
            g.put(File(id=b"", size=0))
        with pytest.raises(InvalidKey, match="the key 'hash' of a File would have 2,049 bytes"):
            g.put(File(id=bytes(2049), size=0))


class Session(Node):
    id: str
    user: int


class Visit(Node):
    id: str
    page: str


SESSIONS = AdjacencyList(
    table="Sessions",
    partition_key="token",
    sort_key=None,
    reverse=None,
    keys={Session: Keys(partition="s-{id}"), Visit: Keys(partition="v-{id}")},
    indexes=[Index("ByUser", "user")],
)


@pytest.mark.parametrize("where", STORES)
def test_sessions_and_visits_in_one_table(where: str, servers: Stores) -> None:
    known = [item(token="s-1", user=5), item(token="s-2", user=5), item(token="v-1", page="/"), item(token="other")]
    with filled(where, servers, [Session, Visit], SESSIONS, known) as g:
        assert (g.get(Session, "1"), g.get(Visit, "1")) == (Session(id="1", user=5), Visit(id="1", page="/"))
        assert {each.id for each in g.find(Session, field("user") == 5)} == {"1", "2"}
        assert (g.scan(Session).count(), g.scan(Visit).count()) == (2, 1)
        assert list(g.scan().others) == [{"token": "other"}]
        g.put(Visit(id="2", page="/a"))
        assert stored(g, "v-2") == item(token="v-2", page="/a")
        around = g.collection(Session.ref("1"))
        assert (around.node, around.edges, around.others) == (Session(id="1", user=5), [], [])


def test_tenants_share_a_table_with_a_partition_key_only() -> None:
    store = SQLiteStore(":memory:")
    with Graph(store, [Session, Visit], SESSIONS) as g:
        one, other = g.for_tenant("one"), g.for_tenant("other")
        one.put(Session(id="1", user=1))
        other.put(Session(id="1", user=2))
        g.put(Session(id="1", user=3))
        assert stored(g, "one#s-1") == item(token="one#s-1", user=1)
        assert [each.get(Session, "1") for each in (one, other, g)] == [
            Session(id="1", user=1),
            Session(id="1", user=2),
            Session(id="1", user=3),
        ]
        assert [each.scan(Session).count() for each in (one, other, g)] == [1, 1, 1]
        assert one.delete(Session, "1")
        assert other.get(Session, "1") is not None


# --- a sort key that is a number ---------------------------------------------------------------


class Reading(Node, key=("device", "at")):
    device: str
    at: int
    value: Decimal


READINGS = AdjacencyList(
    table="Readings",
    partition_key="device",
    sort_key="at",
    types={"at": "N"},
    reverse=None,
    keys={Reading: Keys(partition="{device}", sort="{at}")},
)

TIMES = [-1, 0, 2, 9, 10, 100, 1000]

MEASURED = [item(device="d1", at=at, value=at) for at in TIMES] + [item(device="d2", at=5, value=Decimal("1.25"))]

D1 = field("device") == "d1"


@pytest.fixture(params=STORES)
def readings(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, [Reading], READINGS, MEASURED) as g:
        yield g


def times(found: Any) -> list[int]:
    return [each.at for each in found]


def test_readings_are_in_the_order_of_numbers(readings: Graph) -> None:
    g = readings
    assert asked(g, lambda: g.get(Reading, ("d2", 5)), 1) == Reading(device="d2", at=5, value=Decimal("1.25"))
    assert times(asked(g, lambda: list(g.find(Reading, D1)), 1)) == TIMES
    assert times(asked(g, lambda: list(g.find(Reading, D1 & field("at").between(1, 10))), 1)) == [2, 9, 10]
    assert times(asked(g, lambda: list(g.find(Reading, D1 & (field("at") > 9) & (field("at") < 1000))), 1)) == [10, 100]
    assert times(asked(g, lambda: list(g.find(Reading, D1 & (field("at") <= Decimal("9.5")))), 1)) == [-1, 0, 2, 9]
    assert times(g.find(Reading, D1, order="at").reverse()) == TIMES[::-1]
    assert times(g.find(Reading, D1 & (field("at") == 10))) == [10]
    assert times(paged(g.find(Reading, D1), 2)) == TIMES
    assert times(paged(g.find(Reading, D1).reverse(), 3)) == TIMES[::-1]
    both = g.find(Reading, field("device").is_in(["d1", "d2"]))
    assert times(paged(both, 2)) == [-1, 0, 2, 5, 9, 10, 100, 1000]
    assert times(g.find(Reading, D1 & (field("value") > 50))) == [100, 1000]
    assert g.find(Reading, D1).count() == len(TIMES)
    assert g.scan(Reading).count() == len(MEASURED)


def test_readings_are_written(readings: Graph) -> None:
    g = readings
    asked(g, lambda: g.put(Reading(device="d1", at=-40, value=Decimal(1))), 1)
    assert stored(g, "d1", -40) == item(device="d1", at=-40, value=1)
    g.update(Reading, ("d1", -40), value=2)
    assert times(g.find(Reading, D1))[:2] == [-40, -1]
    assert g.delete(Reading, ("d1", 9))
    assert times(g.find(Reading, D1 & (field("at") > 2))) == [10, 100, 1000]
    around = g.collection(Reading.ref(("d1", 10)))
    assert asked(g, lambda: around.node, 1) == Reading(device="d1", at=10, value=Decimal(10))
    with g.transaction() as tx:
        for at in (1, 2, 3):
            tx.put(Reading(device="d3", at=at, value=Decimal(at)))
    assert times(g.find(Reading, field("device") == "d3")) == [1, 2, 3]


class Event(Node, key=("user", "at")):
    user: int
    at: dt.datetime
    what: str = ""


EVENTS = AdjacencyList(
    table="Events",
    partition_key="user",
    sort_key="at",
    types={"user": "N", "at": "N"},
    reverse=None,
    keys={Event: Keys(partition="{user}", sort="{at}")},
)

NEW_YEAR = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize("where", STORES)
def test_a_datetime_is_the_second_since_1970(where: str, servers: Stores) -> None:
    known = [item(user=3, at=1767225600, what="bang"), item(user=3, at=Decimal("1767225600.25")), item(user=3, at=-1)]
    foreign = [item(user=3, at=Decimal("0.0000001")), item(user=3, at=10**20)]
    with filled(where, servers, [Event], EVENTS, [*known, *foreign]) as g:
        assert g.get(Event, (3, NEW_YEAR)) == Event(user=3, at=NEW_YEAR, what="bang")
        found = [each.at for each in g.find(Event, field("user") == 3)]
        assert found == [
            dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC),
            NEW_YEAR,
            NEW_YEAR + dt.timedelta(milliseconds=250),
        ]
        since = (field("user") == 3) & (field("at") > NEW_YEAR)
        assert [each.at for each in g.find(Event, since)] == found[2:]
        elsewhere = dt.timezone(dt.timedelta(hours=5))
        g.put(Event(user=4, at=dt.datetime(2026, 1, 1, 5, 0, 0, 1, tzinfo=elsewhere)))
        assert stored(g, 4, Decimal("1767225600.000001")) is not None
        with pytest.raises(InvalidKey, match="has no time zone, so its second since 1970 is unknown"):
            g.put(Event(user=4, at=dt.datetime(2026, 1, 1)))


@pytest.mark.parametrize(("format", "unit"), [("epoch", 1), ("epoch_ms", 1000)])
@pytest.mark.parametrize("where", STORES)
def test_a_datetime_may_be_in_whole_seconds_or_milliseconds(
    where: str, servers: Stores, format: str, unit: int
) -> None:
    keys = {Event: Keys(partition="{user}", sort=f"{{at:{format}}}")}
    known = [item(user=3, at=1767225600 * unit), item(user=3, at=-unit), item(user=3, at=Decimal("0.5"))]
    with filled(where, servers, [Event], replace(EVENTS, keys=keys), known) as g:
        assert g.get(Event, (3, NEW_YEAR)) == Event(user=3, at=NEW_YEAR)
        before = dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC)
        assert [each.at for each in g.find(Event, field("user") == 3)] == [before, NEW_YEAR]
        later = (field("user") == 3) & (field("at") > before)
        assert [each.at for each in g.find(Event, later)] == [NEW_YEAR]
        assert g.verify("scan").counts == {"EVENT": 2}
        with pytest.raises(InvalidValue, match=f"has parts that '{format}' does not hold"):
            g.put(Event(user=3, at=NEW_YEAR + dt.timedelta(microseconds=1)))


class Chunk(Node, key=("file", "part")):
    file: bytes
    part: bytes
    text: str = ""


CHUNKS = AdjacencyList(
    table="Chunks",
    partition_key="file",
    sort_key="part",
    types={"file": "B", "part": "B"},
    reverse=None,
    keys={Chunk: Keys(partition="{file}", sort="{part}")},
)


@pytest.mark.parametrize("where", STORES)
def test_binary_sort_keys_are_in_the_order_of_their_bytes(where: str, servers: Stores) -> None:
    # In Base64, these would be in another order.
    parts = [b"\x00", b"\x00\x01", b"a", b"ab", b"\xfb", b"\xff"]
    with filled(where, servers, [Chunk], CHUNKS, [item(file=b"f", part=each) for each in parts]) as g:
        of_file = field("file") == b"f"
        assert [each.part for each in g.find(Chunk, of_file)] == parts
        assert [each.part for each in g.find(Chunk, of_file & field("part").begins_with(b"a"))] == [b"a", b"ab"]
        assert [each.part for each in g.find(Chunk, of_file & field("part").between(b"ab", b"\xfe"))] == [
            b"ab",
            b"\xfb",
        ]
        bounds = (field("part") >= b"\x00\x01") & (field("part") <= b"\xfb") & (field("part") >= b"a")
        assert [each.part for each in g.find(Chunk, of_file & bounds)] == [b"a", b"ab", b"\xfb"]
        assert [each.part for each in paged(g.find(Chunk, of_file), 2)] == parts
        many = g.find(Chunk, field("file").is_in([b"f", b"g"]))
        g.put(Chunk(file=b"g", part=b"\xfc"))
        assert [each.part for each in paged(many, 3)] == [*parts[:5], b"\xfc", b"\xff"]
        assert g.delete(Chunk, (b"f", b"a"))
        assert g.get(Chunk, (b"f", b"a")) is None
        assert g.get(Chunk, (b"f", b"ab")) == Chunk(file=b"f", part=b"ab")


# --- indexed fields, and what the table cannot hold --------------------------------------------


class Member(Node):
    id: int
    age: Annotated[int, Indexed()]


@pytest.mark.parametrize("where", STORES)
def test_one_indexed_field_with_a_fixed_number_of_shards(where: str, servers: Stores) -> None:
    layout = AdjacencyList(
        table="Members", partition_key="id", sort_key=None, types={"id": "N"}, reverse=None, shards=2
    )
    with filled(where, servers, [Member], layout, []) as g:
        g.put_many([Member(id=number, age=number % 4) for number in range(-6, 6)])
        assert sorted(each.id for each in g.find(Member, field("age") == 3)) == [-5, -1, 3]
        assert [each.age for each in paged(g.find(Member, field("age") >= 2), 2)] == [2, 2, 2, 3, 3, 3]
        g.update(Member, -5, age=9)
        assert [each.id for each in g.find(Member, field("age") > 3)] == [-5]
        assert g.delete(Member, -5)
        assert list(g.find(Member, field("age") > 3)) == []


def test_maintenance_needs_records(tmp_path: Path) -> None:
    with Graph(tmp_path / "f.db", [User], USERS) as g:
        for call in (lambda: g.maintain(once=True), g.rebuild):
            with pytest.raises(
                InvalidModel, match=r"records of maintenance and rebuilds .* the key 'id' of the table is a"
            ):
                call()


# --- opening -----------------------------------------------------------------------------------


@pytest.mark.parametrize("where", STORES)
def test_a_table_with_other_keys_is_refused_with_both_types(where: str, servers: Stores) -> None:
    with filled(where, servers, [User], USERS, []) as g:
        text = AdjacencyList(table="Users", partition_key="id", sort_key=None, reverse=None)
        with pytest.raises(TableMismatch, match=r"its keys are id \(N\), not id \(S\)"):
            Graph(g._store, [Session], text)
        two = AdjacencyList(table="Users", partition_key="id", types={"id": "N"}, reverse=None)
        with pytest.raises(TableMismatch, match=r"its keys are id \(N\), not id \(N\) and SK \(S\)"):
            Graph(g._store, [User], two)
