"""Every write and read, with every way in which a server can misbehave: nothing is lost or applied twice.

A misbehaviour says whether the request was applied, so each test knows what must be there afterwards.
"""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import AlreadyExists, ConditionFailed, Graph, NotFound, OutcomeUnknown, TransactionCanceled, field
from tests.models import SCHOOL, Course, Enrollment, Friendship, Student
from tests.stores.dynamodb.misbehaving import (
    DRIPPING,
    DROPPED,
    DROPPED_AFTER,
    FAILED,
    FAILED_AFTER,
    LOST_AFTER,
    LOST_BEFORE,
    REFUSED,
    SILENT,
    SILENT_AFTER,
    THROTTLED,
    MisbehavingServer,
    Misbehaviour,
    names,
)

SLOW = (SILENT, SILENT_AFTER, DRIPPING)
SOON = 0.5
"""Seconds of waiting for an answer that does not come. A request that was only slow is sent again."""
EACH = tuple(how for how in (*REFUSED, *LOST_BEFORE, *LOST_AFTER) if how not in SLOW)

each_way = pytest.mark.parametrize("how", EACH, ids=names(EACH))


@each_way
def test_put_and_get(g: Any, behind: Graph, server: MisbehavingServer, how: Misbehaviour, name: str) -> None:
    course = Course(id=name, name="Maths")
    server.misbehave(how)
    g.put(course)
    assert behind.get(Course, name) == course
    server.misbehave(how, how)
    assert g.get(Course, name) == course


@each_way
def test_add(g: Any, behind: Graph, server: MisbehavingServer, how: Misbehaviour, name: str) -> None:
    course = Course(id=name, name="Maths", credits=5)
    server.misbehave(how, how)
    g.add(course)
    assert behind.get(Course, name) == course


@each_way
def test_a_counter_is_never_added_to_twice(
    g: Any, behind: Graph, server: MisbehavingServer, how: Misbehaviour, name: str
) -> None:
    behind.put(Course(id=name, credits=5))
    server.misbehave(how)
    if how.lost:
        with pytest.raises(OutcomeUnknown, match="was lost") as caught:
            g.update(Course, name, credits=field("credits") + 1)
        assert caught.value.retryable is False
    else:
        assert g.update(Course, name, credits=field("credits") + 1).credits == 6
    assert behind.get(Course, name) == Course(id=name, credits=6 if how.applied or not how.lost else 5)


@each_way
def test_a_state_is_set(g: Any, behind: Graph, server: MisbehavingServer, how: Misbehaviour, name: str) -> None:
    behind.put(Course(id=name, credits=5))
    server.misbehave(how, how)
    after = Course(id=name, name="Mathematics", credits=5)
    assert g.update(Course, name, name="Mathematics") == after
    assert behind.get(Course, name) == after


@each_way
def test_connect(g: Any, behind: Graph, server: MisbehavingServer, how: Misbehaviour, name: str) -> None:
    behind.put_many([Student(id=name, name="Ann"), Course(id=name), Student(id=f"{name}b", name="Bob")])
    server.misbehave(how, how)
    edge = g.connect(Enrollment, name, name, grade="A")
    assert list(behind.out(name, Enrollment)) == [edge]
    server.misbehave(how)
    friends = g.connect(Friendship, name, f"{name}b", since=1)
    assert list(behind.out(name, Friendship)) == [friends]
    server.misbehave(how)
    with pytest.raises(AlreadyExists):
        g.connect(Enrollment, name, name, grade="B")
    with pytest.raises(NotFound):
        g.connect(Enrollment, name, f"{name}-nowhere")


@each_way
def test_a_transaction_is_applied_once(
    g: Any, behind: Graph, server: MisbehavingServer, how: Misbehaviour, name: str
) -> None:
    taker, giver = f"{name}-taker", f"{name}-giver"
    behind.put_many([Course(id=taker, credits=2), Course(id=giver, credits=5)])
    server.misbehave(how, how)
    with g.transaction() as t:
        t.update(Course, giver, credits=field("credits") - 1)
        t.update(Course, taker, credits=field("credits") + 1)
        t.add(Student(id=name, name="Ann"))
    assert behind.get_many(Course, [giver, taker]) == [Course(id=giver, credits=4), Course(id=taker, credits=3)]
    assert behind.get(Student, name) == Student(id=name, name="Ann")
    tokens = {call.payload["ClientRequestToken"] for call in server.calls if call.operation == "TransactWriteItems"}
    assert len(tokens) == 1


@each_way
def test_a_transaction_that_cannot_be_applied(
    g: Any, behind: Graph, server: MisbehavingServer, how: Misbehaviour, name: str
) -> None:
    behind.put_many([Course(id=name, credits=2), Student(id=name, name="Ann")])
    server.misbehave(how, how)
    with pytest.raises(TransactionCanceled, match="add Student"), g.transaction() as t:
        t.update(Course, name, credits=field("credits") + 1)
        t.add(Student(id=name, name="Bob"))
    assert behind.get(Course, name) == Course(id=name, credits=2)


@each_way
def test_disconnect_and_delete(g: Any, behind: Graph, server: MisbehavingServer, how: Misbehaviour, name: str) -> None:
    behind.put_many([Course(id=name), Enrollment(source=name, target=name), Friendship(source=name, target="x")])
    server.misbehave(how)
    if how.applied:
        # It is gone, but nobody can say any more whether it was there.
        with pytest.raises(OutcomeUnknown, match="the item before it is unknown"):
            g.disconnect(Enrollment, name, name)
    else:
        assert g.disconnect(Enrollment, name, name) is True
    assert list(behind.out(name, Enrollment)) == []
    server.misbehave(how)
    assert g.disconnect(Friendship, name, "x") is True
    assert list(behind.out("x", Friendship)) == []
    server.misbehave(how, operation="DeleteItem")
    assert g.delete(Course, name) is True
    assert behind.get(Course, name) is None


@each_way
def test_reads_of_many(g: Any, behind: Graph, server: MisbehavingServer, how: Misbehaviour, name: str) -> None:
    edges = [Enrollment(source=name, target=f"c{number}", points=number) for number in range(5)]
    behind.put_many([*edges, Course(id=name)])
    server.misbehave(how, how)
    assert list(g.out(name, Enrollment)) == edges
    server.misbehave(how)
    assert g.get_many(Course, [name, "nobody"]) == [Course(id=name), None]
    server.misbehave(how)
    assert g.collection(Student(id=name, name="")).edges == edges


@pytest.mark.parametrize("how", SLOW, ids=names(SLOW))
def test_answers_that_take_too_long(
    location: str, quick: None, behind: Graph, server: MisbehavingServer, how: Misbehaviour, name: str
) -> None:
    with Graph(location.replace("timeout=10", f"timeout={SOON}"), SCHOOL) as g:
        behind.put(Course(id=name, credits=5))
        server.misbehave(how)
        with pytest.raises(OutcomeUnknown):
            g.update(Course, name, credits=field("credits") + 1)
        credits = 6 if how.applied else 5
        assert behind.get(Course, name) == Course(id=name, credits=credits)
        server.misbehave(how)
        with g.transaction() as t:
            t.update(Course, name, credits=field("credits") + 1)
            t.put(Student(id=name, name="Ann"))
        assert behind.get(Course, name) == Course(id=name, credits=credits + 1)
        server.misbehave(how)
        g.put(Course(id=name))
        assert g.get(Course, name) == Course(id=name)


# --- conditions in doubt -----------------------------------------------------------------------


def test_what_is_there_already_is_told_from_what_was_added(
    g: Any, behind: Graph, server: MisbehavingServer, name: str
) -> None:
    behind.put(Course(id=name, name="of somebody else"))
    for hows in ((), (THROTTLED,), (THROTTLED, THROTTLED)):
        server.misbehave(*hows)
        with pytest.raises(AlreadyExists):
            g.add(Course(id=name, name="mine"))
    assert behind.get(Course, name) == Course(id=name, name="of somebody else")


@pytest.mark.parametrize("how", [DROPPED, FAILED], ids=names([DROPPED, FAILED]))
def test_another_item_in_the_way_of_a_lost_add(
    g: Any, behind: Graph, server: MisbehavingServer, how: Misbehaviour, name: str
) -> None:
    """It may be ours, changed by somebody since, so nobody can say that it was not added."""
    behind.put(Course(id=name, name="of somebody else"))
    server.misbehave(how)
    with pytest.raises(OutcomeUnknown, match="condition does not hold"):
        g.add(Course(id=name, name="mine"))
    assert behind.get(Course, name) == Course(id=name, name="of somebody else")


@pytest.mark.parametrize("how", [DROPPED_AFTER, FAILED_AFTER], ids=names([DROPPED_AFTER, FAILED_AFTER]))
def test_an_update_that_takes_its_own_condition_away(
    g: Any, behind: Graph, server: MisbehavingServer, how: Misbehaviour, name: str
) -> None:
    behind.put(Course(id=name, name="new"))
    server.misbehave(how)
    with pytest.raises(OutcomeUnknown, match="condition does not hold"):
        g.update(Course, name, only_if=field("name") == "new", name="done")
    assert behind.get(Course, name) == Course(id=name, name="done")
    server.misbehave(DROPPED)
    with pytest.raises(NotFound):
        g.update(Course, f"{name}-nowhere", name="done")


def test_a_failed_condition_is_no_doubt(g: Any, behind: Graph, server: MisbehavingServer, name: str) -> None:
    behind.put(Student(id=name, name="Ann", version=3))
    server.misbehave(THROTTLED)
    with pytest.raises(ConditionFailed):
        g.update(Student, name, if_version=2, name="Bob")
    assert g.update(Student, name, if_version=3, name="Bob").version == 4
