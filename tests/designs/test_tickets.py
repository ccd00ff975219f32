"""A ticketing system: a partition for the tickets of each month, with comments, files and watchers beside them.

    pk          sk                         assignee  gsi1sk          shard  gsi3pk     gsi3sk
    ORG#o1      CUST#c1
    T#2026-05   00000001                   a1        01#2026-05-02   1
    T#2026-05   00000001#C#1767268800000
    T#2026-05   00000001#F#log.txt
    T#2026-05   00000001#W#o1|c1                                            W#o1|c1    2026-05#00000001

ByAssignee has a field and a template as its keys, and holds the title alone. Recent is sharded by a number and holds
keys only. ByOpened is local. Multi has two attributes in each key. One item has a key that fits no template.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest

from adjoin import AdjacencyList, Child, Edge, Expires, Graph, Index, Keys, Node, Projection, Stored, field
from adjoin.requests import PageResponse, Scan
from adjoin.values import Item
from tests.designs.table_of_others import STORES, asked, filled, item
from tests.servers.open import Stores


class Customer(Node, key=("org", "id")):
    org: str
    id: str
    name: str


class Ticket(Node, key=("month", "number")):
    month: str
    number: int
    title: str
    status: Literal["open", "closed"] = "open"
    severity: Annotated[int, Stored("02d")] = 3
    opened: Annotated[dt.datetime, Stored("%Y-%m-%dT%H:%M:%SZ")]
    due: Annotated[dt.datetime | None, Stored("epoch")] = None
    ttl: Annotated[int | None, Expires()] = None
    assignee: str | None = None


class Comment(Child[Ticket], key=("at",)):
    at: dt.datetime
    text: str


class Attachment(Child[Ticket], key=("name",)):
    name: str
    digest: bytes


class Watches(Edge[Ticket, Customer]):
    since: Annotated[dt.datetime, Stored("epoch")]


MODELS: list[Any] = [Customer, Ticket, Comment, Attachment, Watches]
LAYOUT = AdjacencyList(
    table="Tickets",
    partition_key="pk",
    sort_key="sk",
    reverse=None,
    type_attribute="_t",
    indexes=[
        Index("ByAssignee", "assignee", "gsi1sk", projection=Projection("INCLUDE", ("title",))),
        Index("Recent", "shard", "opened", shards=4, types={"shard": "N"}, projection=Projection("KEYS_ONLY")),
        Index("ByWatcher", "gsi3pk", "gsi3sk"),
        Index("ByOpened", "pk", "opened", local=True),
        Index("Multi", ("status", "severity"), ("assignee", "opened")),
    ],
    keys={
        Customer: Keys(partition="ORG#{org}", sort="CUST#{id}", type="cust"),
        Ticket: Keys(
            partition="T#{month}",
            sort="{number:08}",
            type="ticket",
            indexes={"ByAssignee": (None, "{severity:02}#{opened:%Y-%m-%d}"), "Recent": "{shard}"},
        ),
        Comment: Keys(sort="{parent.number:08}#C#{at:epoch_ms}", type="comment"),
        Attachment: Keys(sort="{parent.number:08}#F#{name}", type="file"),
        Watches: Keys(
            sort="{source.number:08}#W#{target.org}|{target.id}",
            type="watch",
            indexes={"ByWatcher": ("W#{target.org}|{target.id}", "{source.month}#{source.number:08}")},
        ),
    },
)
FIRST = 1_767_268_800_000


def _ticket(number: int, month: str) -> Item:
    day, severity = f"{month}-{number % 27 + 1:02}", f"{number % 4:02}"
    of_assignee: dict[str, Any] = {"assignee": f"a{number % 2}", "gsi1sk": f"{severity}#{day}"} if number % 3 else {}
    return item(
        pk=f"T#{month}",
        sk=f"{number:08}",
        _t="ticket",
        title=f"t{number}",
        status="open" if number % 2 else "closed",
        severity=severity,
        opened=f"{day}T10:00:00Z",
        shard=number % 4,
        team="an attribute that no field explains",
        **of_assignee,
    )


ITEMS = [
    *(_ticket(number, "2026-05" if number < 25 else "2026-06") for number in range(1, 37)),
    item(pk="ORG#o1", sk="CUST#c1", _t="cust", name="Ann"),
    *(item(pk="T#2026-05", sk=f"00000001#C#{FIRST + at}", _t="comment", text=f"c{at}") for at in range(4)),
    item(pk="T#2026-05", sk="00000001#F#log.txt", _t="file", digest=b"\x00\xff"),
    *(
        item(
            pk="T#2026-05",
            sk=f"{number:08}#W#o1|c1",
            _t="watch",
            since=1_767_268_800 + number,
            gsi3pk="W#o1|c1",
            gsi3sk=f"2026-05#{number:08}",
        )
        for number in (1, 2)
    ),
]
OTHERS = [item(pk="T#2026-05", sk="notes", x=1)]
ONE = ("2026-05", 1)


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, [*ITEMS, *OTHERS]) as graph:
        yield graph


def _day(day: int, month: int = 5) -> dt.datetime:
    return dt.datetime(2026, month, day, tzinfo=dt.UTC)


def test_each_question_in_its_least_number_of_requests(g: Graph) -> None:
    moment = dt.datetime.fromtimestamp(FIRST / 1000, dt.UTC)
    severe = (field("assignee") == "a1") & (field("severity") == 1)
    several = (field("status") == "open") & (field("severity") == 1) & (field("assignee") == "a1")
    # What is asked, what it finds, and in how many requests.
    questions: list[tuple[Any, list[Any], int]] = [
        ([each.number for each in [g.get(Ticket, ONE)] if each], [1], 0),
        (g.children(ONE, Comment).reverse().limit(2), ["c3", "c2"], 1),
        (g.children(ONE, Comment).between(moment, moment + dt.timedelta(milliseconds=1)), ["c0", "c1"], 1),
        (g.children(ONE, Attachment), ["log.txt"], 1),
        (g.find(Ticket, (field("month") == "2026-05") & field("number").between(3, 5)), [3, 4, 5], 1),
        (g.find(Ticket, (field("month") == "2026-05") & (field("opened") >= _day(24)), order="opened"), [23, 24], 1),
        (g.find(Ticket, severe), [1, 5, 13, 17, 29, 25], 2),
        (g.find(Ticket, several), [1, 5, 13, 17, 29, 25], 1),
        (g.find(Ticket, field("opened") >= _day(8, 6), index="Recent"), [34, 35, 36, 25, 26], 5),
        (g.find(Ticket, order="opened", index="Recent").limit(2), [1, 2], 5),
        (g.into(Customer.ref(org="o1", id="c1"), Watches), [("2026-05", 1), ("2026-05", 2)], 1),
        (g.out(ONE, Watches), [("2026-05", 1)], 1),
        (g.index("ByWatcher").partition("W#o1|c1"), [("2026-05", 1), ("2026-05", 2)], 1),
    ]
    for query, wanted, requests in questions:
        found, made = asked(g, query)
        assert made == requests, query
        assert [_shown(each) for each in found] == wanted, query


def _shown(found: Any) -> Any:
    names: dict[type[Any], str] = {Ticket: "number", Comment: "text", Attachment: "name", Watches: "source"}
    return getattr(found, names[type(found)]) if type(found) in names else found


def test_one_collection_and_one_child(g: Graph) -> None:
    whole = g.collection(Ticket.ref(month="2026-05", number=1))
    assert whole.node is not None
    assert (whole.node.number, len(whole.edges), len(whole.children), whole.others) == (1, 1, 5, [])
    moment = dt.datetime.fromtimestamp(FIRST / 1000, dt.UTC)
    assert g.get(Comment, (ONE, moment)) == Comment(parent=ONE, at=moment, text="c0")


def test_everything_is_counted_and_stored_back_unchanged(g: Graph) -> None:
    def scanned() -> dict[str, Item]:
        (page,) = g._store.execute([Scan(LAYOUT.table, consistent=True)])
        assert isinstance(page, PageResponse)
        # An edge of nodes that can expire says when it was put.
        kept = [{name: value for name, value in each.items() if name != "adjoin:written"} for each in page.items]
        return {f"{each['pk']} {each['sk']}": each for each in kept if "adjoin:declared" not in each}

    before = scanned()
    for model in MODELS:
        assert g.count(model) == len(list(g.scan(model)))
    assert [each["sk"] for each in g.scan().others] == ["notes"]
    g.put_many(list(g.scan()))
    assert scanned() == before
