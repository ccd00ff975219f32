from __future__ import annotations

from copy import deepcopy

import pytest

from adjoin.errors import InvalidRequest
from adjoin.expressions import Action, Add, Remove
from adjoin.stores.updates import update_of
from adjoin.values import Item
from tests.stores.examples import n
from tests.stores.expressions import BEFORE, CREATIONS, KEY, NO_PATH, REJECTED_UPDATES, UPDATES, changed, path


@pytest.mark.parametrize(("actions", "expected"), UPDATES)
def test_updates(actions: list[Action], expected: Item) -> None:
    before = deepcopy(BEFORE)
    assert update_of(actions, KEY)(BEFORE) == expected
    assert before == BEFORE, "the item given must stay as it is"


@pytest.mark.parametrize(("actions", "expected"), CREATIONS)
def test_updates_of_an_item_that_is_not_there(actions: list[Action], expected: Item | None) -> None:
    assert update_of(actions, KEY)(None) == expected


@pytest.mark.parametrize(("actions", "message"), REJECTED_UPDATES)
def test_rejected_updates(actions: list[Action], message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        update_of(actions, KEY)(BEFORE)
    assert str(caught.value) == message


def test_sums_are_exact_to_38_digits() -> None:
    update = update_of([Add(path("count"), n("0." + "0" * 36 + "1"))], KEY)
    assert update(BEFORE) == changed(count=n("5." + "0" * 36 + "1"))


def test_a_path_that_leads_nowhere_is_refused_also_without_an_item() -> None:
    update = update_of([Remove(path("a", "b"))], KEY)
    with pytest.raises(InvalidRequest, match=NO_PATH):
        update(None)
