"""Transactions, on both graphs: all or nothing, with a reason for every item."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import AlreadyExists, ConditionFailed, InvalidRequest, NotFound, TransactionCanceled, field
from tests.models import ANN, BOB, Course, Enrollment, Exam, Student


def test_a_transaction_is_all_or_nothing(school: Any) -> None:
    with school.meter() as meter, school.transaction() as t:
        t.put(Course(id="music", name="Music"))
        made = t.connect(Enrollment, "bob", "music", grade="A")
        t.update(Student, "ann", name="Anna")
        t.disconnect(Enrollment, "ann", "art")
        t.add(Exam(source="bob", target="music", term="x"))
    assert meter.requests == 1
    assert school.edge(Enrollment, "bob", "music") == made
    assert school.get(Student, "ann").name == "Anna"
    assert school.edge(Enrollment, "ann", "art") is None
    before = list(school.changes())
    with pytest.raises(TransactionCanceled) as error, school.meter() as meter, school.transaction() as t:
        t.put(Course(id="new"))
        t.add(ANN)
        t.update(Student, "nobody", name="x")
    assert meter.requests == 1, "nobody came between, so that another attempt would fail as well"
    assert [reason.code for reason in error.value.reasons] == ["None", *["ConditionalCheckFailed"] * 2]
    assert "add Student 'ann'" in str(error.value)
    assert list(school.changes()) == before


def test_a_reason_says_which_call_failed_for_what_and_how(school: Any) -> None:
    with pytest.raises(TransactionCanceled) as error, school.transaction() as t:
        t.add(ANN)
        t.put(Course(id="art", name="Art"), only_if=field("name") == "Dance")
        t.update(Student, "nobody", name="x")
        t.update(Student, "bob", only_if=field("name") == "Ann", name="x")
        t.connect(Enrollment, "bob", "chess")
        t.put(Course(id="new"))
    told = [(each.call, each.model, each.id, each.error) for each in error.value.reasons]
    assert told == [
        ("add", Student, "ann", AlreadyExists),
        ("put", Course, "art", ConditionFailed),
        ("update", Student, "nobody", NotFound),
        ("update", Student, "bob", ConditionFailed),
        ("connect", Enrollment, ("bob", "chess"), None),
        ("put", Course, "new", None),
        ("connect", Course, "chess", NotFound),
    ]
    assert "connect Enrollment from 'bob' to 'chess': there is no Course 'chess'" in str(error.value)
    assert "#" not in str(error.value), "a message has no keys of items"
    with pytest.raises(TransactionCanceled) as error, school.transaction() as t:
        t.connect(Enrollment, "ann", "art")
    (failed,) = [each for each in error.value.reasons if each.error is not None]
    assert (failed.call, failed.model, failed.id, failed.error) == (
        "connect",
        Enrollment,
        ("ann", "art"),
        AlreadyExists,
    )


def test_a_transaction_writes_nothing_if_its_block_fails(g: Any) -> None:
    with pytest.raises(ZeroDivisionError), g.transaction() as t:
        t.put(ANN)
        _ = 1 / 0
    assert g.get(Student, "ann") is None


def test_what_a_transaction_refuses(school: Any) -> None:
    with pytest.raises(InvalidRequest, match="put Student 'ann'"), school.transaction() as t:
        t.put(ANN)
        t.update(Student, "ann", name="x")
    with pytest.raises(InvalidRequest, match="101"), school.transaction() as t:
        for number in range(101):
            t.put(Course(id=str(number)))
    with pytest.raises(InvalidRequest, match="delete Course 'art'"), school.transaction() as t:
        t.delete(Course, "art")
        t.connect(Enrollment, "bob", "art")
    with school.transaction() as t:
        pass


def test_delete_in_a_transaction_takes_the_edges_along(school: Any) -> None:
    with school.transaction() as t:
        t.delete(Student, "ann")
        t.delete(Course, "art")
        t.put(Course(id="new"))
    assert school.get(Student, "ann") is None
    assert [edge.source for edge in school.into("maths", Enrollment)] == ["bob"]
    assert list(school.into("art", Enrollment)) == []
    assert school.get(Course, "new") is not None


# --- outside the block -------------------------------------------------------------------------


def test_writes_outside_the_block_are_refused_rather_than_forgotten(g: Any) -> None:
    t = g.transaction()
    with pytest.raises(InvalidRequest, match="inside its block"):
        t.put(ANN)
    with t as inside:
        inside.put(ANN)
    for call in ("put", "add"):
        with pytest.raises(InvalidRequest, match="inside its block"):
            getattr(inside, call)(BOB)
    with pytest.raises(InvalidRequest, match="inside its block"):
        inside.delete(ANN)
    with pytest.raises(InvalidRequest, match="already been used"), t:
        pass
    assert (g.get(Student, "ann"), g.get(Student, "bob")) == (ANN, None)


def test_nothing_of_a_block_that_raised_is_written_by_another(g: Any) -> None:
    t = g.transaction()
    with pytest.raises(RuntimeError), t as inside:
        inside.put(ANN)
        raise RuntimeError
    with pytest.raises(InvalidRequest, match="already been used"), t:
        pass
    assert g.get(Student, "ann") is None
