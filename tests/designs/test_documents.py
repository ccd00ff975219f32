"""A store of documents with versions, an audit log and one configuration; and bank accounts with payments.

    PK           SK                        title  status   due         GSI2PK       GSI2SK
    DOC#d1       v0                        Plan                        AUTHOR#ann   2026-02-03
    DOC#d1       v001                      Draft
    DOC#d1       AUDIT#2026-02-01T10:00#ann
    CONFIG       SITE
    ACCOUNT#a1   ACCOUNT#a1                       open
    ACCOUNT#a1   PAYMENT#2026-03-01#007           due      2026-03-01

The item v0 is the document as it is now, and v001, v002 and so on are all its versions. ByStatus is over attributes: of
accounts `status` and `opened`, of payments `status` and `due`, which is part of the sort key too.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import (
    AdjacencyList,
    Child,
    ConditionFailed,
    Graph,
    Index,
    InvalidKey,
    InvalidModel,
    Keys,
    Node,
    TransactionCanceled,
    field,
)
from adjoin import Version as Counted
from adjoin.values import Item
from tests.designs.table_of_items import STORES, asked, at, filled, in_order, item, others, rewritten, stored
from tests.servers.open import Stores


class Document(Node):
    id: str
    title: str
    author: str
    edited: dt.date
    latest: Annotated[int, Counted()] = 1


class Version(Child[Document], key=("number",)):
    number: int
    title: str
    edited: dt.date


class Audit(Child[Document], key=("at", "who")):
    at: str
    who: str
    action: str


class Site(Node, key=()):
    name: str
    theme: str = "light"


class Account(Node):
    id: str
    owner: str
    status: str
    opened: dt.date
    balance: Decimal = Decimal(0)


class Payment(Child[Account], key=("due", "number")):
    due: dt.date
    number: int
    amount: Decimal
    status: str | None = None


LAYOUT = AdjacencyList(
    table="Documents",
    reverse=None,
    indexes=[
        Index("ByStatus", "status", "due"),
        Index("Accounts", "status", "opened"),
        Index("ByAuthor", "GSI2PK", "GSI2SK"),
    ],
    keys={
        Document: Keys(partition="DOC#{id}", sort="v0", indexes={"ByAuthor": ("AUTHOR#{author}", "{edited}")}),
        Version: Keys(sort="v{number:03}"),
        Audit: Keys(sort="AUDIT#{at}#{who}"),
        Site: Keys(partition="CONFIG", sort="SITE"),
        Account: Keys(partition="ACCOUNT#{id}", sort="ACCOUNT#{id}"),
        Payment: Keys(sort="PAYMENT#{due}#{number:03}", indexes={"ByStatus": (None, "{due}")}),
    },
)
MODELS: list[Any] = [Document, Version, Audit, Site, Account, Payment]


def document(id: str, title: str, author: str, day: int, latest: int) -> Item:
    edited = f"2026-02-{day:02}"
    keys = {"GSI2PK": f"AUTHOR#{author}", "GSI2SK": edited}
    return item(f"DOC#{id}", "v0", title=title, author=author, edited=edited, latest=latest, **keys)


def version(id: str, number: int, title: str, day: int) -> Item:
    return item(f"DOC#{id}", f"v{number:03}", title=title, edited=f"2026-02-{day:02}")


def audit(id: str, time: str, who: str, action: str) -> Item:
    return item(f"DOC#{id}", f"AUDIT#2026-02-{time}#{who}", action=action)


def account(id: str, owner: str, status: str, day: int, balance: int) -> Item:
    values = {"owner": owner, "status": status, "opened": f"2026-01-{day:02}", "balance": balance}
    return item(f"ACCOUNT#{id}", f"ACCOUNT#{id}", **values)


def payment(id: str, due: str, number: int, amount: int, status: str | None) -> Item:
    values: dict[str, Any] = {"amount": amount} | ({} if status is None else {"status": status, "due": due})
    return item(f"ACCOUNT#{id}", f"PAYMENT#{due}#{number:03}", **values)


KNOWN = [
    document("d1", "Plan", "ann", 3, 3),
    *(version("d1", number, title, number) for number, title in enumerate(["Draft", "Draft 2", "Plan"], 1)),
    document("d2", "Notes", "ann", 5, 1),
    version("d2", 1, "Notes", 5),
    document("d3", "Menu", "bob", 4, 1),
    audit("d1", "01T10:00", "ann", "made"),
    audit("d1", "02T11:00", "bob", "read"),
    audit("d1", "03T12:00", "ann", "changed"),
    item("CONFIG", "SITE", name="Docs", theme="dark"),
    account("a1", "ann", "open", 1, 100),
    account("a2", "bob", "closed", 2, 0),
    account("a3", "eve", "open", 3, -5),
    payment("a1", "2026-03-01", 7, 20, "due"),
    payment("a1", "2026-03-02", 8, 30, "due"),
    payment("a1", "2026-02-01", 6, 10, None),
    payment("a3", "2026-03-01", 1, 40, "due"),
]
OTHERS = [
    item("CONFIG", "LIMITS", documents=10),
    item("DOC#d1", "v00", title="not of three digits"),
    item("DOC#d1", "v1", title="nor this"),
]


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, [*KNOWN, *OTHERS]) as graph:
        yield graph


def test_the_table_is_what_adjoin_would_have_written(g: Graph) -> None:
    assert others(g) == OTHERS
    assert rewritten(g) == stored(g) == in_order([*KNOWN, *OTHERS])


def test_the_latest_and_all_versions(g: Graph) -> None:
    latest = asked(g, lambda: g.get(Document, "d1"), 1)
    assert (latest.title, latest.latest) == ("Plan", 3)
    assert asked(g, lambda: g.get(Version, ("d1", 2)), 1).title == "Draft 2"
    versions = g.children("d1", Version)
    assert [each.number for each in asked(g, lambda: list(versions), 1)] == [1, 2, 3]
    assert [each.number for each in asked(g, lambda: list(versions.reverse().limit(1)), 1)] == [3]
    assert [each.number for each in asked(g, lambda: list(versions.between(2, None)), 1)] == [2, 3]
    assert asked(g, versions.count, 1) == 3
    assert [each.number for each in versions.page(limit=2)] == [1, 2]
    both = asked(g, lambda: g.get_many(Document, ["d2", "d9", "d3"]), 1)
    assert [each and each.title for each in both] == ["Notes", None, "Menu"]


def test_the_audit_log(g: Graph) -> None:
    log = g.children("d1", Audit)
    assert [each.who for each in asked(g, lambda: list(log), 1)] == ["ann", "bob", "ann"]
    assert [each.who for each in asked(g, lambda: list(log.between("2026-02-02", None)), 1)] == ["bob", "ann"]
    assert [each.action for each in asked(g, lambda: list(log.begins_with("2026-02-03")), 1)] == ["changed"]
    assert [each.action for each in asked(g, lambda: list(log.where(field("action") == "read")), 1)] == ["read"]


def test_everything_of_a_document(g: Graph) -> None:
    around = g.collection(Document.ref("d1"))
    assert asked(g, lambda: around.node, 1) == g.get(Document, "d1")
    assert [type(each) for each in around.children] == [Audit] * 3 + [Version] * 3
    assert [each["SK"] for each in around.others] == ["v00", "v1"]


def test_the_documents_of_an_author(g: Graph) -> None:
    ann = field("author") == "ann"
    assert [each.id for each in asked(g, lambda: list(g.find(Document, ann)), 1)] == ["d1", "d2"]
    late = ann & (field("edited") > dt.date(2026, 2, 3))
    assert [each.id for each in asked(g, lambda: list(g.find(Document, late)), 1)] == ["d2"]


def test_the_configuration(g: Graph) -> None:
    assert asked(g, lambda: g.get(Site, ()), 1) == Site(name="Docs", theme="dark")
    asked(g, lambda: g.update(Site, (), theme="light"), 1)
    assert at(g, "CONFIG", "SITE") == item("CONFIG", "SITE", name="Docs", theme="light")
    g.put(Site(name="Other"))
    assert at(g, "CONFIG", "SITE") == item("CONFIG", "SITE", name="Other", theme="light")
    assert at(g, "CONFIG", "LIMITS") is not None


def edit(g: Graph, was: Document, title: str, day: int) -> None:
    """A new version: the next number, and the document as it is now, unless somebody else was faster."""
    edited = dt.date(2026, 2, day)
    with g.transaction() as t:
        t.update(Document, was.id, title=title, edited=edited, if_version=was.latest)
        t.add(Version(parent=was.id, number=was.latest + 1, title=title, edited=edited))
        t.add(Audit(parent=was.id, at=f"2026-02-{day:02}T09:00", who="ann", action="changed"))


def test_a_new_version(g: Graph) -> None:
    was = g.get(Document, "d1")
    assert was is not None
    edit(g, was, "Final", 9)
    new = [
        document("d1", "Final", "ann", 9, 4),
        version("d1", 4, "Final", 9),
        audit("d1", "09T09:00", "ann", "changed"),
    ]
    assert stored(g) == in_order([*new, *KNOWN[1:], *OTHERS])
    before = stored(g)
    with pytest.raises(TransactionCanceled):
        edit(g, was, "Too late", 10)
    assert stored(g) == before
    with pytest.raises(ConditionFailed):
        g.put(was)


def test_accounts_and_payments(g: Graph) -> None:
    around = g.collection(Account.ref("a1"))
    assert asked(g, lambda: around.node, 1).balance == 100
    assert [each.number for each in around.children] == [6, 7, 8]
    march = g.children("a1", Payment).between(dt.date(2026, 3, 1), dt.date(2026, 3, 31))
    assert [each.amount for each in asked(g, lambda: list(march), 1)] == [20, 30]
    last = asked(g, lambda: g.children("a1", Payment).reverse().first(), 1)
    assert last is not None
    assert last.number == 8
    due = field("status") == "due"
    found = asked(g, lambda: list(g.find(Payment, due & (field("due") <= dt.date(2026, 3, 1)))), 1)
    assert sorted((each.parent, each.number) for each in found) == [("a1", 7), ("a3", 1)]
    assert [each.number for each in asked(g, lambda: list(g.find(Payment, due & (field("amount") > 20))), 1)] == [1, 8]
    opened = asked(g, lambda: list(g.find(Account, field("status") == "open")), 1)
    assert [each.id for each in opened] == ["a1", "a3"]
    assert [each.id for each in g.find(Account, field("status") == "open", order="opened").reverse()] == ["a3", "a1"]


def test_a_payment_is_made_and_settled(g: Graph) -> None:
    key = ("a1", dt.date(2026, 3, 1), 7)
    with g.transaction() as t:
        t.update(Account, "a1", balance=field("balance") - 20, only_if=field("balance") >= 20)
        t.update(Payment, key, status=None)
    assert at(g, "ACCOUNT#a1", "ACCOUNT#a1") == account("a1", "ann", "open", 1, 80)
    assert at(g, "ACCOUNT#a1", "PAYMENT#2026-03-01#007") == payment("a1", "2026-03-01", 7, 20, None)
    asked(g, lambda: g.update(Payment, key, status="failed"), 1)
    assert at(g, "ACCOUNT#a1", "PAYMENT#2026-03-01#007") == payment("a1", "2026-03-01", 7, 20, "failed")
    assert [each.number for each in g.find(Payment, field("status") == "failed")] == [7]
    asked(g, lambda: g.update(Account, "a1", status="closed"), 1)
    assert [each.id for each in g.find(Account, field("status") == "closed")] == ["a1", "a2"]
    before = stored(g)
    g.put(Payment(parent="a2", due=dt.date(2026, 4, 1), number=1, amount=Decimal(9), status="due"))
    assert stored(g) == in_order([*before, payment("a2", "2026-04-01", 1, 9, "due")])
    assert g.delete(Account, "a2")
    assert stored(g) == [each for each in before if each["PK"] != {"S": "ACCOUNT#a2"}]


def test_a_document_goes_with_its_versions(g: Graph) -> None:
    was = g.get(Document, "d1")
    assert was is not None
    g.delete(was)
    kept = [each for each in KNOWN if each["PK"] != {"S": "DOC#d1"}]
    assert stored(g) == in_order([*kept, *OTHERS])


class Machine(Node):
    id: str
    latest: int


class Check(Child[Machine], key=("number",)):
    number: Annotated[int, Field(ge=1)]
    by: str = ""


class AnyCheck(Child[Machine], key=("number",)):
    number: int


MACHINES = [
    item("MACHINE#1", "v0#AUDIT", latest=10),
    *(item("MACHINE#1", f"v{number}#AUDIT", by="ann") for number in (1, 2, 10)),
    item("MACHINE#1", "v01#AUDIT"),
]


def machines(child: type[Any]) -> AdjacencyList:
    keys: dict[type[Any], Keys] = {Machine: Keys("MACHINE#{id}", "v0#AUDIT"), child: Keys(sort="v{number}#AUDIT")}
    return AdjacencyList(table="Machines", reverse=None, keys=keys)


@pytest.mark.parametrize("where", STORES)
def test_version_0_beside_versions_without_leading_zeros(where: str, servers: Stores) -> None:
    """The field begins at 1, so v0 is never the key of a version."""
    with filled(where, servers, [Machine, Check], machines(Check), MACHINES) as g:
        assert asked(g, lambda: g.get(Machine, "1"), 1) == Machine(id="1", latest=10)
        assert sorted(each.number for each in asked(g, lambda: list(g.children("1", Check)), 1)) == [1, 2, 10]
        assert asked(g, lambda: g.children("1", Check).count(), 1) == 3
        assert asked(g, lambda: g.get(Check, ("1", 2)), 1) == Check(parent="1", number=2, by="ann")
        assert others(g) == MACHINES[-1:]
        for call in (g.get, g.delete):
            with pytest.raises(InvalidKey, match=r"0 does not fit Check\.number"):
                call(Check, ("1", 0))
        assert rewritten(g) == stored(g) == in_order(MACHINES)


def test_versions_without_a_bound_are_refused() -> None:
    with pytest.raises(
        InvalidModel, match=r"same sort key v0#AUDIT; .*or give AnyCheck.number a bound .* Field\(ge=1\)"
    ):
        Graph(":memory:", [Machine, AnyCheck], machines(AnyCheck))
