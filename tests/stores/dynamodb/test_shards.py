"""Positions, and what they say about a family of shards: tables of input and exact output."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjoin.errors import InvalidRequest
from adjoin.stores.dynamodb.shards import Family, ReadSoFar, StreamPosition, StreamShard, parse_position
from tests.shares import examples

SHARD_IDS = st.from_regex(r"shardId-[0-9]{20}-[0-9a-f]{8}|H[0-9a-f]+:[0-9a-f]+", fullmatch=True)
EXTENTS = st.from_regex(r"\*|[@-]?[0-9]{1,40}", fullmatch=True)


@given(st.dictionaries(SHARD_IDS, EXTENTS, min_size=1))
def test_positions_can_be_written_and_read(read: ReadSoFar) -> None:
    position = StreamPosition("2023-11-14T22:13:20.003", read)
    parsed = parse_position("T", str(position))
    assert parsed == position
    assert list(parsed.read) == list(read)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "000000010000000000003",
        "x",
        "2023-11-14T22:13:20.003",
        "2023-11-14T22:13:20.003/",
        "2023-11-14T22:13:20.003/shardId-1",
        "2023-11-14T22:13:20.003/shardId-1=",
        "2023-11-14T22:13:20.003/shardId-1=x",
        "2023-11-14T22:13:20.003/shardId-1=-",
        "2023-11-14T22:13:20.003/shardId-1=**",
        "2023-11-14T22:13:20.003/shardId-1=1/shardId-2",
        "2023-11-14T22:13:20.003/shardId-1=١",
        "/shardId-1=1",
    ],
    ids=repr,
)
def test_texts_that_are_no_positions(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a position of the change stream of T"):
        parse_position("T", text)


def test_the_message_about_a_long_text_is_short() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_position("T", "x" * 10_000)
    assert len(str(caught.value)) < 300


def test_when_a_shard_was_made() -> None:
    assert StreamShard("shardId-00000001414576573621-f55eea83").created == 1414576573.621
    assert StreamShard("shardId-00000000000000000000-00000000").created is None
    assert StreamShard("H1700000000:abcdef").created is None


@pytest.mark.parametrize(
    ("last", "extent", "ends"),
    [
        (None, "9", False),
        ("9", None, False),
        ("9", "8", False),
        ("9", "9", True),
        ("9", "10", True),
        ("10", "9", False),
        ("9", "@9", False),
        ("9", "-9", False),
        ("9", "*", False),
    ],
)
def test_whether_a_shard_ends_with_what_was_read(last: str | None, extent: str | None, ends: bool) -> None:
    assert StreamShard("S", last=last).ends_at(extent) is ends


def family(**parents: str | None) -> Family:
    return Family(StreamShard(shard, parent) for shard, parent in parents.items())


# A was split into B and C, and B into D and E.
TREE: dict[str, str | None] = {"A": None, "B": "A", "C": "A", "D": "B", "E": "B"}


@pytest.mark.parametrize(
    ("parents", "read", "ready"),
    [
        (TREE, {}, "A"),
        (TREE, {"A": "1"}, "A"),
        (TREE, {"A": "@1"}, "A"),
        (TREE, {"A": "-1"}, "A"),
        (TREE, {"A": "*"}, "BC"),
        (TREE, {"A": "*", "B": "1"}, "CB"),
        (TREE, {"B": "1"}, "CB"),
        (TREE, {"B": "*"}, "CDE"),
        (TREE, {"C": "1", "B": "*"}, "DEC"),
        (TREE, {"B": "*", "C": "*"}, "DE"),
        (TREE, {"D": "1"}, "CED"),
        (TREE, {"D": "1", "C": "5"}, "EDC"),
        (TREE, {"C": "*", "D": "*", "E": "*"}, ""),
        # Parents that are gone hold nobody up; those that are listed later do.
        ({"B": "A", "C": "A"}, {}, "BC"),
        ({"C": "B", "B": "A", "A": None}, {}, "A"),
    ],
)
def test_which_shards_may_be_read(parents: dict[str, str | None], read: ReadSoFar, ready: str) -> None:
    assert "".join(shard.id for shard in family(**parents).ready(read)) == ready


@pytest.mark.parametrize(
    ("parents", "read", "condensed"),
    [
        (TREE, {"A": "1"}, {"A": "1"}),
        (TREE, {"A": "*"}, {"A": "*"}),
        (TREE, {"A": "*", "B": "1"}, {"A": "*", "B": "1"}),
        (TREE, {"A": "*", "B": "1", "C": "2"}, {"B": "1", "C": "2"}),
        (TREE, {"A": "*", "B": "*", "C": "2"}, {"B": "*", "C": "2"}),
        (TREE, {"A": "*", "B": "*", "C": "2", "D": "3", "E": "*"}, {"C": "2", "D": "3", "E": "*"}),
        (TREE, {"C": "*", "D": "3", "E": "*"}, {"C": "*", "D": "3", "E": "*"}),
        # A is gone, and whether it was finished matters as long as C was not begun.
        ({"B": "A", "C": "A"}, {"A": "*", "B": "1"}, {"A": "*", "B": "1"}),
        ({"B": "A", "C": "A"}, {"A": "*", "B": "1", "C": "1"}, {"B": "1", "C": "1"}),
        ({"D": "B"}, {"A": "*", "D": "1"}, {"D": "1"}),
        # Something must be left to say.
        ({}, {"A": "*"}, {"A": "*"}),
    ],
)
def test_what_a_position_must_say(parents: dict[str, str | None], read: ReadSoFar, condensed: ReadSoFar) -> None:
    assert family(**parents).condensed(read) == condensed


@pytest.mark.parametrize(
    ("parents", "read", "reason"),
    [
        (TREE, {"A": "1"}, None),
        ({"B": "A"}, {"A": "1"}, "A was not read to its end, and is gone"),
        ({"B": "A"}, {"A": "@1"}, "A was not read to its end, and is gone"),
        ({"B": "A"}, {"A": "-1"}, "A was not read to its end, and is gone"),
        ({"B": "A"}, {"A": "*"}, None),
        ({"B": "A", "C": "A"}, {"B": "1"}, None),
        ({"C": "B"}, {"A": "*"}, "B was never read, and is gone"),
        ({"C": "B", "D": "C"}, {"D": "1"}, None),
        # A new shard that comes from nowhere is only new.
        ({"A": None, "X": None}, {"A": "1"}, None),
    ],
)
def test_what_is_out_of_reach(parents: dict[str, str | None], read: ReadSoFar, reason: str | None) -> None:
    assert family(**parents).out_of_reach(read) == reason


@settings(max_examples=examples(14), suppress_health_check=[HealthCheck.large_base_example, HealthCheck.too_slow])
@given(st.data())
def test_condensing_changes_no_meaning(data: st.DataObject) -> None:
    """Readers that go through a tree in any order and condense what they say read the same as others."""
    ids = "ABCDEF"
    parents = {
        shard: data.draw(st.sampled_from([None, *ids[:at]]), label=shard) if at else None
        for at, shard in enumerate(ids)
    }
    tree = family(**parents)
    said: ReadSoFar = {}
    known: ReadSoFar = {}
    while ready := tree.ready(known):
        assert {shard.id for shard in tree.ready(said)} == {shard.id for shard in ready}
        shard = data.draw(st.sampled_from(ready))
        extent = data.draw(st.sampled_from(["1", "*"]))
        known[shard.id] = extent
        tree.begin(said, shard)
        said[shard.id] = extent
        said = tree.condensed(said)
        assert tree.out_of_reach(said) is None
    assert said == {shard: "*" for shard in ids if not tree.has_children(shard)}
