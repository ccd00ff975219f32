"""Any writes with any faults, beside a dictionary: what is stored is what a perfect server would have stored.

The dictionary knows of each fault whether the request was applied, so it also knows what must be there
after an `OutcomeUnknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import AdjoinError, AlreadyExists, Graph, NotFound, OutcomeUnknown, TransactionCanceled, field
from tests.models import SCHOOL, Course, Friendship, Student
from tests.shares import examples
from tests.stores.dynamodb.misbehaving import MisbehavingServer, Misbehaviour
from tests.stores.dynamodb.test_lost_answers import EACH

IDS = ("a", "b", "c")
_PREFIXES = count()


@dataclass(frozen=True)
class Step:
    verb: str
    id: str
    other: str
    value: int
    faults: tuple[Misbehaviour, ...]

    def __repr__(self) -> str:
        return f"{self.verb}({self.id}, {self.other}, {self.value}; {', '.join(each.name for each in self.faults)})"

    @property
    def is_doubtful(self) -> bool:
        return any(fault.lost for fault in self.faults)


class Model:
    """What must be stored, and what each step must raise."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.courses: dict[str, Course] = {}
        self.friends: set[frozenset[str]] = set()

    def named(self, id: str) -> str:
        return f"{self.prefix}-{id}"

    def put(self, g: Graph, step: Step) -> None:
        self.courses[step.id] = Course(id=self.named(step.id), credits=step.value)
        g.put(self.courses[step.id])

    def set(self, g: Graph, step: Step) -> None:
        before = self.courses.get(step.id)
        if before is not None:
            self.courses[step.id] = before.model_copy(update={"name": str(step.value)})
        g.update(Course, self.named(step.id), name=str(step.value))

    def add(self, g: Graph, step: Step) -> None:
        new = Course(id=self.named(step.id), credits=step.value)
        self.courses.setdefault(step.id, new)
        g.add(new)

    def count(self, g: Graph, step: Step) -> None:
        loss = next((fault for fault in step.faults if fault.lost), None)
        before = self.courses.get(step.id)
        if before is not None and (loss is None or loss.applied):
            self.courses[step.id] = before.model_copy(update={"credits": before.credits + step.value})
        g.update(Course, self.named(step.id), credits=field("credits") + step.value)

    def transfer(self, g: Graph, step: Step) -> None:
        one, other = self.courses.get(step.id), self.courses.get(step.other)
        if one is not None and other is not None:
            self.courses[step.id] = one.model_copy(update={"credits": one.credits - step.value})
            self.courses[step.other] = other.model_copy(update={"credits": other.credits + step.value})
        with g.transaction() as t:
            t.update(Course, self.named(step.id), credits=field("credits") - step.value)
            t.update(Course, self.named(step.other), credits=field("credits") + step.value)

    def befriend(self, g: Graph, step: Step) -> None:
        self.friends.add(frozenset((step.id, step.other)))
        g.connect(Friendship, self.named(step.id), self.named(step.other))

    def part(self, g: Graph, step: Step) -> None:
        pair = frozenset((step.id, step.other))
        was_there = pair in self.friends
        self.friends.discard(pair)
        assert g.disconnect(Friendship, self.named(step.id), self.named(step.other)) is was_there

    def delete(self, g: Graph, step: Step) -> None:
        self.courses.pop(step.id, None)
        g.delete(Course, self.named(step.id))

    def expected(self, step: Step) -> type[AdjoinError] | None:
        """What the step must raise, by what is there before it."""
        before = self.courses.get(step.id)
        match step.verb:
            case "count" if step.is_doubtful:
                return OutcomeUnknown
            case "count" | "set" if before is None:
                return NotFound
            case "add" if before is not None:
                if not step.is_doubtful:
                    return AlreadyExists
                is_same = before == Course(id=self.named(step.id), credits=step.value)
                # It is there exactly as it was to be added: nobody can tell whose it is.
                return None if is_same else OutcomeUnknown
            case "transfer" if before is None or step.other not in self.courses:
                return TransactionCanceled
            case "befriend" if frozenset((step.id, step.other)) in self.friends:
                return AlreadyExists
        return None


VERBS = ("put", "set", "add", "count", "transfer", "befriend", "part", "delete")
pairs = st.permutations(IDS).map(lambda ids: (ids[0], ids[1]))
steps = st.builds(
    lambda verb, ids, value, faults: Step(verb, ids[0], ids[1], value, tuple(faults)),
    st.sampled_from(VERBS),
    pairs,
    st.integers(1, 3),
    st.lists(st.sampled_from(EACH), max_size=3),
)


def perform(work: Callable[[], Any]) -> type[Exception] | None:
    try:
        work()
    except AdjoinError as error:
        return type(error)
    return None


def check(g: Graph, behind: Graph, server: MisbehavingServer, sequence: Sequence[Step]) -> None:
    model = Model(f"p{next(_PREFIXES)}")
    names = [model.named(id) for id in IDS]
    server.behave()
    behind.put_many(Student(id=name, name="X") for name in names)
    for step in sequence:
        expected = model.expected(step)
        server.misbehave(*step.faults)
        found = perform(lambda step=step: getattr(model, step.verb)(g, step))  # type: ignore[misc]
        server.behave()
        assert found is expected, step
        assert behind.get_many(Course, names) == [model.courses.get(id) for id in IDS], step
    for id in IDS:
        there = {edge.target for edge in behind.out(model.named(id), Friendship)}
        assert there == {model.named(other) for pair in model.friends if id in pair for other in pair - {id}}


@pytest.mark.simulation
def test_any_writes_with_any_faults(
    location: str, quick: None, behind: Graph, module_server: MisbehavingServer
) -> None:
    with Graph(location, SCHOOL) as g:

        @settings(max_examples=examples(14))
        @given(st.lists(steps, min_size=1, max_size=10))
        def run(sequence: list[Step]) -> None:
            check(g, behind, module_server, sequence)

        run()
