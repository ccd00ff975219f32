"""A service for many customers: a partition for each tenant, tickets by status and date, and those of nobody.

    PK           SK                             GSI1PK                   GSI1SK
    TENANT#acme  META
    TENANT#acme  USER#ann
    TENANT#acme  PROJECT#web
    TENANT#acme  PROJECT#web#MEMBER#ann         TENANT#acme#USER#ann     PROJECT#web
    TENANT#acme  TICKET#0001                    TENANT#acme#PROJECT#web  open#2026-03-01
    TENANT#acme  TICKET#0001#COMMENT#2026-03…

GSI2 has the tickets of an assignee, with the same sort key. GSI3 has the tickets without one, by the date since when:
both are sparse, and nothing but the keys of GSI3 holds that date.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

import pytest

from adjoin import AdjacencyList, Child, Graph, Index, Keys, Node, field
from adjoin.fields import Predicate
from adjoin.values import Item
from tests.designs.table_of_items import STORES, asked, at, filled, in_order, item, others, plain, rewritten, stored
from tests.servers.open import Stores


class Status(Enum):
    OPEN = "open"
    DONE = "done"


class Tenant(Node):
    id: str
    name: str
    plan: str = "free"


class User(Child[Tenant], key=("login",)):
    login: str
    name: str
    role: str = "member"


class Project(Child[Tenant], key=("slug",)):
    slug: str
    name: str


class Ticket(Child[Tenant], key=("number",)):
    number: int
    title: str
    project: str
    status: Status = Status.OPEN
    created: dt.date
    assignee: str | None = None
    unassigned: dt.date | None = None


class Comment(Child[Ticket], key=("at",)):
    at: str
    text: str


class Member(Child[Project], key=("login",)):
    """A user of the project. Both ends are of one tenant, which the key names once."""

    login: str
    since: dt.date


LAYOUT = AdjacencyList(
    table="Service",
    reverse=None,
    indexes=[Index("GSI1", "GSI1PK", "GSI1SK"), Index("GSI2", "GSI2PK", "GSI2SK"), Index("GSI3", "GSI3PK", "GSI3SK")],
    keys={
        Tenant: Keys(partition="TENANT#{id}", sort="META"),
        User: Keys(sort="USER#{login}"),
        Project: Keys(sort="PROJECT#{slug}"),
        Ticket: Keys(
            sort="TICKET#{number:04}",
            indexes={
                "GSI1": ("TENANT#{parent.id}#PROJECT#{project}", "{status}#{created}"),
                "GSI2": ("TENANT#{parent.id}#USER#{assignee}", "{status}#{created}"),
                "GSI3": ("TENANT#{parent.id}#UNASSIGNED", "{unassigned}"),
            },
            only_in_keys=("unassigned",),
        ),
        Comment: Keys(sort="TICKET#{parent.number:04}#COMMENT#{at}"),
        Member: Keys(
            sort="PROJECT#{parent.slug}#MEMBER#{login}",
            indexes={"GSI1": ("TENANT#{parent.parent.id}#USER#{login}", "PROJECT#{parent.slug}")},
        ),
    },
)
MODELS = [Tenant, User, Project, Ticket, Comment, Member]

ANN, BOB, EVE = "ann", "bob", "eve"
DAYS = [dt.date(2026, 3, day) for day in range(1, 8)]


def ticket(tenant: str, number: int, project: str, status: str, day: int, assignee: str | None = None) -> Item:
    opened = f"2026-03-{day:02}"
    partition, sort = f"TENANT#{tenant}", f"{status}#{opened}"
    values = {"title": f"t{number}", "project": project, "status": status, "created": opened}
    values |= {"GSI1PK": f"{partition}#PROJECT#{project}", "GSI1SK": sort}
    if assignee is not None:
        values |= {"assignee": assignee, "GSI2PK": f"{partition}#USER#{assignee}", "GSI2SK": sort}
    else:
        values |= {"GSI3PK": f"{partition}#UNASSIGNED", "GSI3SK": opened}
    return item(partition, f"TICKET#{number:04}", **values)


def member(tenant: str, project: str, login: str) -> Item:
    return item(
        f"TENANT#{tenant}",
        f"PROJECT#{project}#MEMBER#{login}",
        since="2026-01-01",
        GSI1PK=f"TENANT#{tenant}#USER#{login}",
        GSI1SK=f"PROJECT#{project}",
    )


KNOWN = [
    item("TENANT#acme", "META", name="Acme", plan="pro"),
    item("TENANT#zoo", "META", name="Zoo", plan="free"),
    *(item("TENANT#acme", f"USER#{login}", name=login.title(), role="member") for login in (ANN, BOB)),
    item("TENANT#zoo", "USER#ann", name="Another Ann", role="admin"),
    *(item("TENANT#acme", f"PROJECT#{slug}", name=slug.title()) for slug in ("api", "web")),
    item("TENANT#zoo", "PROJECT#web", name="Zoo's"),
    member("acme", "web", ANN),
    member("acme", "api", ANN),
    member("acme", "web", BOB),
    member("zoo", "web", ANN),
    ticket("acme", 1, "web", "open", 1, ANN),
    ticket("acme", 2, "web", "done", 2, ANN),
    ticket("acme", 3, "web", "open", 3),
    ticket("acme", 4, "api", "open", 4, BOB),
    ticket("acme", 5, "web", "open", 5, ANN),
    ticket("acme", 6, "api", "open", 6),
    ticket("zoo", 1, "web", "open", 1, ANN),
    ticket("zoo", 2, "web", "open", 2),
    *(item("TENANT#acme", f"TICKET#0001#COMMENT#2026-03-0{day}T10:00:00Z", text=f"c{day}") for day in (2, 3)),
]
OTHERS = [
    item("REGION#eu", "META", name="Europe"),
    item("TENANT#acme", "BILLING#2026-03", amount=12),
    item("TENANT#acme", "TICKET#1", title="no four digits"),
]


@pytest.fixture(params=STORES)
def g(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Graph]:
    with filled(request.param, servers, MODELS, LAYOUT, [*KNOWN, *OTHERS]) as graph:
        yield graph


def of(tenant: str, *more: Predicate) -> Predicate:
    found: Predicate = field("parent") == tenant
    for each in more:
        found = found & each
    return found


IN_WEB = field("project") == "web"
IS_OPEN = field("status") == Status.OPEN


def numbers(found: Iterable[Ticket]) -> list[int]:
    return [each.number for each in found]


def test_the_table_is_what_adjoin_would_have_written(g: Graph) -> None:
    assert rewritten(g) == stored(g) == in_order([*KNOWN, *OTHERS])
    assert others(g) == OTHERS


def test_what_is_read_by_keys(g: Graph) -> None:
    tenant = asked(g, lambda: g.get(Tenant, "acme"), 1)
    assert tenant == Tenant(id="acme", name="Acme", plan="pro")
    assert asked(g, lambda: g.get(User, ("zoo", ANN)), 1).name == "Another Ann"
    assert [each.login for each in asked(g, lambda: list(g.children("acme", User)), 1)] == [ANN, BOB]
    assert [each.slug for each in asked(g, lambda: list(g.children("acme", Project)), 1)] == ["api", "web"]
    assert numbers(asked(g, lambda: list(g.children("acme", Ticket)), 1)) == [1, 2, 3, 4, 5, 6]
    assert numbers(asked(g, lambda: list(g.children("acme", Ticket).between(2, 4)), 1)) == [2, 3, 4]
    assert [each.login for each in asked(g, lambda: list(g.children(("acme", "web"), Member)), 1)] == [ANN, BOB]
    comments = asked(g, lambda: list(g.children(("acme", 1), Comment).reverse()), 1)
    assert [each.text for each in comments] == ["c3", "c2"]


def test_everything_of_a_tenant(g: Graph) -> None:
    around = g.collection(Tenant.ref("acme"))
    assert asked(g, lambda: around.node, 1) == Tenant(id="acme", name="Acme", plan="pro")
    kinds = Counter(type(each) for each in around.children)
    assert kinds == {User: 2, Project: 2, Member: 3, Ticket: 6, Comment: 2}
    assert around.others == [plain(each) for each in OTHERS[1:]]


def test_tickets_by_status_and_date(g: Graph) -> None:
    found = asked(g, lambda: list(g.find(Ticket, of("acme", IN_WEB, IS_OPEN))), 1)
    assert numbers(found) == [1, 3, 5]
    since = IS_OPEN & (field("created") >= DAYS[2])
    assert numbers(asked(g, lambda: list(g.find(Ticket, of("acme", IN_WEB) & since)), 1)) == [3, 5]
    latest = asked(g, lambda: g.find(Ticket, of("acme", IN_WEB, IS_OPEN)).reverse().first(), 1)
    assert latest is not None
    assert latest.number == 5
    assert numbers(asked(g, lambda: list(g.find(Ticket, of("acme", IN_WEB))), 1)) == [2, 1, 3, 5]
    page = asked(g, lambda: g.find(Ticket, of("acme", IN_WEB, IS_OPEN)).page(limit=2), 1)
    assert numbers(page) == [1, 3]
    assert numbers(g.find(Ticket, of("acme", IN_WEB, IS_OPEN)).page(after=page.next)) == [5]


def test_tickets_of_somebody_and_of_nobody(g: Graph) -> None:
    mine = of("acme", field("assignee") == ANN)
    assert numbers(asked(g, lambda: list(g.find(Ticket, mine & IS_OPEN)), 1)) == [1, 5]
    found = asked(g, lambda: list(g.find(Ticket, of("acme"), order="unassigned")), 1)
    assert [(each.number, each.unassigned) for each in found] == [(3, dt.date(2026, 3, 3)), (6, dt.date(2026, 3, 6))]
    late = of("acme", field("unassigned") > dt.date(2026, 3, 4))
    assert numbers(asked(g, lambda: list(g.find(Ticket, late)), 1)) == [6]
    assert numbers(g.find(Ticket, of("acme"), index="GSI3")) == [3, 6]
    # A sparse index does not have them all.
    assert numbers(asked(g, lambda: list(g.find(Ticket, of("acme"))), 1)) == [1, 2, 3, 4, 5, 6]


def test_projects_of_a_user(g: Graph) -> None:
    in_tenant = (field("parent.parent.id") == "acme") & (field("login") == ANN)
    found = asked(g, lambda: list(g.find(Member, in_tenant)), 1)
    assert [each.parent for each in found] == [("acme", "api"), ("acme", "web")]
    assert [each.parent for each in g.find(Member, in_tenant & (field("parent.slug") > "api"))] == [("acme", "web")]
    assert g.find(Member, in_tenant & ~(field("parent.slug") == "web")).count() == 1


def test_a_ticket_gets_an_assignee_and_loses_it(g: Graph) -> None:
    """The item enters one sparse index and leaves the other, as if another program had written it."""
    with g.meter() as meter:
        g.update(Ticket, ("acme", 3), assignee=BOB, unassigned=None)
    assert meter.requests == 2
    assert at(g, "TENANT#acme", "TICKET#0003") == ticket("acme", 3, "web", "open", 3, BOB)
    assert numbers(g.find(Ticket, of("acme", field("assignee") == BOB))) == [3, 4]
    assert numbers(g.find(Ticket, of("acme"), index="GSI3")) == [6]
    g.update(Ticket, ("acme", 3), assignee=None, unassigned=dt.date(2026, 3, 3))
    assert at(g, "TENANT#acme", "TICKET#0003") == ticket("acme", 3, "web", "open", 3)
    assert stored(g) == in_order([*KNOWN, *OTHERS])


def test_an_update_that_needs_no_reading(g: Graph) -> None:
    with g.meter() as meter:
        g.update(Ticket, ("acme", 1), unassigned=dt.date(2026, 3, 9))
    assert meter.requests == 1
    assert numbers(g.find(Ticket, of("acme"), index="GSI3")) == [3, 6, 1]


def test_a_status_changes(g: Graph) -> None:
    g.update(Ticket, ("acme", 1), status=Status.DONE)
    assert at(g, "TENANT#acme", "TICKET#0001") == ticket("acme", 1, "web", "done", 1, ANN)
    g.update(Ticket, ("acme", 3), status=Status.DONE)
    assert at(g, "TENANT#acme", "TICKET#0003") == ticket("acme", 3, "web", "done", 3)
    with g.transaction() as t:
        t.update(Ticket, ("acme", 6), status=Status.DONE)
        t.update(Ticket, ("acme", 4), assignee=ANN)
    assert at(g, "TENANT#acme", "TICKET#0006") == ticket("acme", 6, "api", "done", 6)
    assert at(g, "TENANT#acme", "TICKET#0004") == ticket("acme", 4, "api", "open", 4, ANN)


def test_new_items(g: Graph) -> None:
    before = stored(g)
    made: list[Any] = [
        Ticket(parent="zoo", number=3, title="t3", project="web", created=DAYS[2], unassigned=DAYS[2]),
        Ticket(parent="zoo", number=4, title="t4", project="web", created=DAYS[3], assignee=ANN),
        Member(parent=("zoo", "web"), login=EVE, since=dt.date(2026, 1, 1)),
    ]
    g.put_many(made)
    new = [ticket("zoo", 3, "web", "open", 3), ticket("zoo", 4, "web", "open", 4, ANN), member("zoo", "web", EVE)]
    assert stored(g) == in_order([*before, *new])
    for each in made:
        assert g.delete(each)
    assert stored(g) == before


def test_a_tenant_goes_with_all_that_it_has(g: Graph) -> None:
    g.delete(Tenant, "acme")
    kept = [each for each in KNOWN if each["PK"] != {"S": "TENANT#acme"}]
    assert stored(g) == in_order([*kept, *OTHERS])
