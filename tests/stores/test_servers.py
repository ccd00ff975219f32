"""The servers themselves: that they start, end, lack what they are said to lack, and keep tests apart."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from adjoin.errors import AdjoinError, TableNotFound
from adjoin.expressions import Exists, attribute
from adjoin.requests import (
    Check,
    CreateTable,
    DescribeTable,
    DropTable,
    Get,
    ListStreams,
    ListTables,
    Put,
    ReadChanges,
    Request,
    Scan,
    SetTimeToLive,
    TablesResponse,
    TransactGet,
    TransactWrite,
    UpdateTable,
)
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import IndexDefinition, KeyAttribute
from tests.servers.differences import DIFFERENCES, WORDS, Difference
from tests.servers.open import Stores
from tests.servers.own_tables import OwnTables
from tests.servers.processes import NAMES, NotInstalled, Server, Servers
from tests.stores.conftest import UNUSED
from tests.stores.examples import PLAIN, SINGLE, everything, item, key, one, page, put
from tests.waiting import LIMIT

OURS = ["serve", "ministack", "dynalite"]

LACKED: dict[type, Request] = {
    TransactGet: TransactGet((Get("Plain", key("A", "1")),)),
    TransactWrite: TransactWrite((Check("Plain", key("A", "1"), Exists(attribute("PK"))),)),
    ReadChanges: ReadChanges("Plain"),
    SetTimeToLive: SetTimeToLive("Plain", "until"),
    UpdateTable: UpdateTable("Plain", add_indexes=(IndexDefinition("Idx", KeyAttribute("x")),)),
    ListStreams: ListStreams(),
}


@pytest.fixture
def fresh() -> Iterator[Servers]:
    servers = Servers()
    yield servers
    servers.stop()


def answers(server: Server) -> bool:
    try:
        with urlopen(f"{server.endpoint}/", timeout=LIMIT):
            return True
    except URLError as error:
        return "refused" not in str(error)


@pytest.mark.parametrize("name", OURS)
def test_a_server_runs_from_the_first_use_to_the_end(fresh: Servers, name: str) -> None:
    try:
        server = fresh[name]
    except NotInstalled as error:
        pytest.skip(str(error))
    assert fresh[name] is server
    assert answers(server)
    fresh.stop()
    assert not answers(server)


def test_a_server_that_died_is_started_again(fresh: Servers) -> None:
    server = fresh["serve"]
    fresh.process("serve").stop()
    assert not answers(server)
    assert answers(fresh["serve"])


def test_nothing_is_known_that_serve_does_otherwise() -> None:
    """It is the embedded store, and the contract suite over it has no exceptions."""
    assert not [difference for difference in DIFFERENCES if difference.server == "serve"]
    assert "serve" not in WORDS
    assert "serve" in NAMES


@pytest.mark.parametrize("name", OURS)
def test_a_server_lacks_what_it_is_said_to_lack(servers: Stores, name: str) -> None:
    store = servers.open(name, [PLAIN])
    put(store, "Plain", item("A", "1"))
    for kind in store.lacks:
        with pytest.raises(AdjoinError):
            store.pass_on([LACKED[kind]])


def test_every_difference_is_about_a_test(request: pytest.FixtureRequest) -> None:
    unused: set[Difference] = request.config.stash[UNUSED]
    assert not unused, "the suite has no such tests or cases any more; take the rows out of differences.py"


# --- tables of one's own -----------------------------------------------------------------------


@pytest.fixture
def shared() -> Iterator[SQLiteStore]:
    store = SQLiteStore(":memory:")
    store.execute([CreateTable(PLAIN)])
    put(store, "Plain", item("A", "1"))
    yield store
    store.close()


def tables(store: OwnTables | SQLiteStore) -> tuple[str, ...]:
    return one(store, ListTables(), TablesResponse).names


def test_tables_of_ones_own(shared: SQLiteStore) -> None:
    somebodys = Server("endpoint", None, "us-east-1", is_ours=False)
    mine, yours = OwnTables(shared, somebodys, [PLAIN, SINGLE]), OwnTables(shared, somebodys)
    assert tables(mine) == ("Plain", "Single")
    assert tables(yours) == ()
    assert everything(mine, "Plain") == []
    put(mine, "Plain", item("B", "1"))
    assert page(mine, Scan("Plain")).consumed[0].table == "Plain"
    for request in (Put("Plain", item("A", "2")), DescribeTable("Plain"), DropTable("Plain")):
        with pytest.raises(TableNotFound):
            yours.execute([request])
    mine.close()
    assert tables(shared) == ("Plain",), "what was there is left alone, and nothing else is left"
    assert everything(shared, "Plain") == [item("A", "1")]


def test_tables_are_created_when_they_are_named(shared: SQLiteStore) -> None:
    mine = OwnTables(shared, Server("endpoint", None, "us-east-1", is_ours=False), [PLAIN, SINGLE])
    assert len(tables(shared)) == 1
    mine.execute([TransactGet((Get("Single", {"id": {"S": "1"}}),))])
    assert len(tables(shared)) == 2
