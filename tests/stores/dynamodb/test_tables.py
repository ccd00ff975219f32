"""Tables and streams behind a server that misbehaves: made once, dropped once, read on from where they were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from adjoin import AdjacencyList, Graph, InvalidRequest, TableExists, TableNotFound
from adjoin.requests import CreateTable, DescribeTable, DropTable, ListTables, SetTimeToLive
from adjoin.stores.dynamodb import DynamoDBStore
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from tests.models import SCHOOL, Course
from tests.stores.dynamodb.misbehaving import (
    BAD_GATEWAY,
    DROPPED,
    DROPPED_AFTER,
    FAILED_AFTER,
    IN_PROGRESS,
    NO_JSON,
    THROTTLED,
    MisbehavingServer,
    Misbehaviour,
    error,
    names,
)
from tests.stores.examples import EDGES

WAYS = (THROTTLED, DROPPED, BAD_GATEWAY, DROPPED_AFTER, FAILED_AFTER, NO_JSON)
each_way = pytest.mark.parametrize("how", WAYS, ids=names(WAYS))


@pytest.fixture
def store(module_server: MisbehavingServer, quick: None) -> Iterator[DynamoDBStore]:
    store = DynamoDBStore(endpoint=module_server.url)
    yield store
    store.close()


def definition(name: str, **more: Any) -> TableDefinition:
    return TableDefinition(f"Table-{name}", EDGES.partition, EDGES.sort, EDGES.indexes, **more)


@each_way
def test_making_describing_and_dropping(
    store: DynamoDBStore, server: MisbehavingServer, how: Misbehaviour, name: str
) -> None:
    wanted = definition(name, ttl="expires", point_in_time_recovery=True)
    # A fault at every call that making takes, one after the other.
    for number in range(20):
        server.misbehave_at(number, how)
        before = len(server.calls)
        store.execute([CreateTable(wanted)])
        is_through = len(server.calls) - before <= number
        server.misbehave(how, how)
        (found,) = store.execute([DescribeTable(wanted.name)])
        assert found.definition.ttl == "expires"  # type: ignore[union-attr]
        assert found.definition.indexes == wanted.indexes  # type: ignore[union-attr]
        server.misbehave(how)
        assert wanted.name in store.execute([ListTables()])[0].names  # type: ignore[union-attr]
        server.misbehave(how, operation="DeleteTable")
        store.execute([DropTable(wanted.name)])
        server.misbehave(how)
        with pytest.raises(TableNotFound):
            store.execute([DescribeTable(wanted.name)])
        if is_through:
            assert number >= 4
            return


def test_a_table_that_is_there_already(store: DynamoDBStore, server: MisbehavingServer, name: str) -> None:
    wanted = definition(name)
    store.execute([CreateTable(wanted)])
    for how in (None, THROTTLED):
        server.misbehave(how, operation="CreateTable")
        with pytest.raises(TableExists) as caught:
            store.execute([CreateTable(wanted)])
        assert caught.value.request_id
    # With the same keys it may be the one that the lost call made; with others it is not.
    server.misbehave(DROPPED, operation="CreateTable")
    store.execute([CreateTable(wanted)])
    server.misbehave(DROPPED, operation="CreateTable")
    with pytest.raises(TableExists):
        store.execute([CreateTable(TableDefinition(wanted.name, KeyAttribute("other"), None))])


def test_a_table_whose_index_has_the_same_keys_in_other_roles(
    store: DynamoDBStore, server: MisbehavingServer, name: str
) -> None:
    a, b = KeyAttribute("a"), KeyAttribute("b")
    bare = replace(definition(name), indexes=())
    several, one = (replace(bare, indexes=(IndexDefinition.over("Idx", *keys),)) for keys in (([a, b], []), ([a], [b])))
    store.execute([CreateTable(several)])
    server.misbehave(DROPPED, operation="CreateTable")
    store.execute([CreateTable(several)])
    server.misbehave(DROPPED, operation="CreateTable")
    with pytest.raises(TableExists):
        store.execute([CreateTable(one)])


def test_a_new_table_that_is_not_known_everywhere_yet(
    store: DynamoDBStore, server: MisbehavingServer, name: str
) -> None:
    unknown = error(400, "ResourceNotFoundException")
    server.misbehave(unknown, unknown, operation="DescribeTable")
    store.execute([CreateTable(definition(name))])
    assert server.operations() == ["CreateTable", "DescribeTable", "DescribeTable", "DescribeTable"]


def test_a_table_that_is_being_dropped(store: DynamoDBStore, server: MisbehavingServer, name: str) -> None:
    store.execute([CreateTable(definition(name))])
    busy = error(400, "ResourceInUseException")
    server.misbehave(DROPPED_AFTER, busy, operation="DeleteTable")
    store.execute([DropTable(definition(name).name)])
    with pytest.raises(TableNotFound):
        store.execute([DescribeTable(definition(name).name)])


@each_way
def test_time_to_live_of_a_table_that_is_there(
    store: DynamoDBStore, server: MisbehavingServer, how: Misbehaviour, name: str
) -> None:
    wanted = definition(name)
    store.execute([CreateTable(wanted)])
    server.misbehave(how, how, operation="UpdateTimeToLive")
    (found,) = store.execute([SetTimeToLive(wanted.name, "expires")])
    assert found.definition.ttl == "expires"  # type: ignore[union-attr]


def test_time_to_live_that_is_set_already(store: DynamoDBStore, server: MisbehavingServer, name: str) -> None:
    """The service refuses to set it twice, and a lost call may have been the first."""
    wanted = definition(name)
    store.execute([CreateTable(wanted)])
    refused = error(400, "ValidationException")
    server.misbehave(DROPPED_AFTER, refused, operation="UpdateTimeToLive")
    store.execute([SetTimeToLive(wanted.name, "expires")])
    for ways, attribute in (((refused,), "expires"), ((DROPPED, refused), "other")):
        server.misbehave(*ways, operation="UpdateTimeToLive")
        with pytest.raises(InvalidRequest):
            store.execute([SetTimeToLive(wanted.name, attribute)])


@each_way
def test_changes(
    module_server: MisbehavingServer, quick: None, server: MisbehavingServer, how: Misbehaviour, name: str
) -> None:
    layout = AdjacencyList(table=f"Stream-{name}", stream=True)
    with Graph(f"dynamodb://?endpoint={module_server.url}", SCHOOL, layout) as g:
        g.create_table()
        courses = [Course(id=f"{name}-{each}") for each in range(5)]
        for course in courses:
            g.put(course)
        server.calls.clear()
        assert [change.new for change in g.changes()] == courses
        asked = len(server.calls)
        for number in range(asked):
            server.misbehave_at(number, how)
            seen = list(g.changes())
            assert [change.new for change in seen] == courses, number
        server.misbehave(error(400, "ExpiredIteratorException"), how, operation="GetRecords")
        assert [change.new for change in g.changes(after=seen[2].position)] == courses[3:]


def test_refusals_after_a_lost_answer(store: DynamoDBStore, server: MisbehavingServer) -> None:
    """A table call that is refused after a lost answer raises the refusal, by its name."""
    for request in (DescribeTable("Nowhere"), DropTable("Nowhere"), SetTimeToLive("Nowhere", "x")):
        server.misbehave(DROPPED, IN_PROGRESS)
        with pytest.raises(TableNotFound):
            store.execute([request])
