"""What a program with PynamoDB's models does; `test_others.py` runs it where PynamoDB is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pynamodb.attributes import (
    BinaryAttribute,
    BooleanAttribute,
    JSONAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    NumberSetAttribute,
    TTLAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)
from pynamodb.connection import Connection
from pynamodb.exceptions import DeleteError, DoesNotExist, PutError, TableError, TransactWriteError, UpdateError
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex, KeysOnlyProjection, LocalSecondaryIndex
from pynamodb.models import Model
from pynamodb.transactions import TransactGet, TransactWrite

from pytest_adjoin import DynamoDB


class ByAuthor(GlobalSecondaryIndex):
    class Meta:
        index_name = "by-author"
        projection = AllProjection()

    author = UnicodeAttribute(hash_key=True)
    views = NumberAttribute(range_key=True)


class ByViews(LocalSecondaryIndex):
    class Meta:
        index_name = "by-views"
        projection = KeysOnlyProjection()

    forum = UnicodeAttribute(hash_key=True)
    views = NumberAttribute(range_key=True)


class Place(MapAttribute):
    city = UnicodeAttribute()
    point = ListAttribute(of=NumberAttribute)


class Thread(Model):
    class Meta:
        table_name = "Thread"
        region = "us-east-1"
        billing_mode = "PAY_PER_REQUEST"

    forum = UnicodeAttribute(hash_key=True)
    subject = UnicodeAttribute(range_key=True)
    author = UnicodeAttribute(default="ann")
    views = NumberAttribute(default=0)
    tags = UnicodeSetAttribute(null=True)
    scores = NumberSetAttribute(null=True)
    closed = BooleanAttribute(default=False)
    written = UTCDateTimeAttribute(null=True)
    extra = JSONAttribute(null=True)
    raw = BinaryAttribute(null=True, legacy_encoding=False)
    place = Place(null=True)
    until = TTLAttribute(null=True)
    by_author = ByAuthor()
    by_views = ByViews()


class Account(Model):
    class Meta:
        table_name = "Account"
        region = "us-east-1"
        read_capacity_units = 5
        write_capacity_units = 5

    id = UnicodeAttribute(hash_key=True)
    balance = NumberAttribute(default=0)
    version = VersionAttribute()


@pytest.fixture(autouse=True)
def _tables(adjoin_dynamodb: DynamoDB) -> Iterator[None]:
    for model in (Thread, Account):
        # A model keeps its connection, and with it what it knows of the table.
        model._connection = None
        model.create_table(wait=True)
    yield
    for model in (Thread, Account):
        model._connection.connection.client._endpoint.http_session.close()


def test_tables() -> None:
    assert Thread.exists()
    described = Thread.describe_table()
    assert described["TableStatus"] == "ACTIVE"
    assert {index["IndexName"] for index in described["GlobalSecondaryIndexes"]} == {"by-author"}
    assert Account.describe_table()["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
    with pytest.raises(TableError, match="TimeToLive is already enabled"):
        Thread.update_ttl(ignore_update_ttl_errors=False)
    Account.delete_table()
    assert not Account.exists()


def test_items_of_every_attribute() -> None:
    thread = Thread(
        "forum",
        "subject",
        tags={"a", "b"},
        scores={1, 2.5},
        written=datetime(2024, 1, 2, tzinfo=UTC),
        extra={"deep": [1, {"a": None}]},
        raw=b"\x00\xff",
        place=Place(city="Rome", point=[1, 2]),
        until=datetime(2050, 1, 1, tzinfo=UTC),
    )
    thread.save()
    found = Thread.get("forum", "subject", consistent_read=True)
    assert found.attribute_values.keys() == thread.attribute_values.keys()
    for name in ("tags", "scores", "written", "extra", "raw", "until"):
        assert getattr(found, name) == getattr(thread, name)
    assert (found.place.city, list(found.place.point)) == ("Rome", [1, 2])
    with pytest.raises(DoesNotExist):
        Thread.get("forum", "another")
    found.delete()
    assert Thread.count() == 0


def fill(count: int) -> None:
    with Thread.batch_write() as batch:
        for number in range(count):
            batch.save(
                Thread("forum", f"{number:04d}", author=f"author {number % 3}", views=number, tags={str(number % 2)})
            )


def test_batches_queries_and_scans() -> None:
    fill(120)
    assert Thread.count("forum") == 120
    subjects = [each.subject for each in Thread.query("forum", Thread.subject.startswith("01"), page_size=7)]
    assert subjects == [f"{number:04d}" for number in range(100, 120)]
    newest = Thread.query("forum", scan_index_forward=False, limit=3)
    assert [each.subject for each in newest] == ["0119", "0118", "0117"]
    assert newest.last_evaluated_key["subject"] == {"S": "0117"}
    filtered = Thread.query(
        "forum", filter_condition=(Thread.views >= 100) & Thread.tags.contains("1") & ~(Thread.author == "author 0")
    )
    assert [each.views for each in filtered] == [number for number in range(100, 120) if number % 2 and number % 3]
    by_author = list(Thread.by_author.query("author 1", ByAuthor.views.between(10, 20)))
    assert [each.views for each in by_author] == [10, 13, 16, 19]
    assert [each.subject for each in Thread.by_views.query("forum", ByViews.views < 2)] == ["0000", "0001"]
    assert len(list(Thread.scan(Thread.views.is_in(1, 2, 300), segment=0, total_segments=1))) == 2
    assert len(list(Thread.scan(page_size=50, attributes_to_get=["subject"]))) == 120
    asked = [("forum", f"{number:04d}") for number in range(0, 240, 2)]
    assert len(list(Thread.batch_get(asked))) == 60
    with Thread.batch_write() as batch:
        for each in Thread.query("forum"):
            batch.delete(each)
    assert Thread.count() == 0


def test_atomic_updates_and_conditions() -> None:
    thread = Thread("forum", "subject", views=1)
    thread.save(Thread.subject.does_not_exist())
    with pytest.raises(PutError) as failed:
        thread.save(Thread.subject.does_not_exist())
    assert failed.value.cause_response_code == "ConditionalCheckFailedException"
    for _ in range(3):
        thread.update(
            actions=[
                Thread.views.set(Thread.views + 1),
                Thread.tags.add({"x"}),
                Thread.author.set(Thread.author | "somebody"),
                Thread.extra.remove(),
            ],
            condition=Thread.views < 4,
        )
    assert (thread.views, thread.tags) == (4, {"x"})
    with pytest.raises(UpdateError) as refused:
        thread.update(actions=[Thread.views.set(0)], condition=Thread.closed == True)  # noqa: E712
    assert "conditional request failed" in str(refused.value)
    with pytest.raises(DeleteError):
        thread.delete(Thread.views > 100)


def test_versions_and_transactions() -> None:
    ann, bob = Account("ann", balance=100), Account("bob", balance=0)
    connection = Connection(region="us-east-1")
    with TransactWrite(connection=connection) as transaction:
        transaction.save(ann)
        transaction.save(bob)
    assert (ann.version, bob.version) == (1, 1)

    def pay(amount: int) -> None:
        with TransactWrite(connection=connection) as transaction:
            transaction.update(
                Account.get("ann"),
                actions=[Account.balance.add(-amount)],
                condition=Account.balance >= amount,
            )
            transaction.update(Account.get("bob"), actions=[Account.balance.add(amount)])

    pay(70)
    with pytest.raises(TransactWriteError) as canceled:
        pay(70)
    reasons = canceled.value.cancellation_reasons
    assert reasons[0] is not None
    assert (reasons[0].code, reasons[1]) == ("ConditionalCheckFailed", None)
    with TransactGet(connection=connection) as reading:
        futures: list[Any] = [reading.get(Account, name) for name in ("ann", "bob")]
    assert [future.get().balance for future in futures] == [30, 70]
    stale = Account.get("ann")
    Account.get("ann").update(actions=[Account.balance.set(31)])
    with pytest.raises(UpdateError):
        stale.update(actions=[Account.balance.set(0)])
    connection.client._endpoint.http_session.close()
