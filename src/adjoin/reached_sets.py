"""Reached sets: which different nodes a node leads to, as attributes of the node and in ledgers.

An aggregate with `distinct=True` is made of a reached set. It is an attribute of the near node, and holds a text for
each different node that its edges lead to, with the number of edges over which the node is reached. So if one of these
edges goes, the set still knows whether the node is reached over another one. A ledger has the texts alone: those that
its edge contributes.

A text is the node key; if a field of the nodes is added up, the value of the field comes first, and a space. While a
changed value is on its way, a set may have two texts of one node. The node counts once all the same.

Sets are stored as compressed JSON, because they are part of every read and write of their node. Beside it is a version:
a random token that is new whenever the set is written. So a condition compares the version in place of the set.

This module knows neither rules nor items as a whole.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from decimal import Decimal
from os import urandom
from typing import Literal, TypeAlias

from orjson import OPT_SORT_KEYS, dumps, loads

from adjoin.errors import InvalidValue
from adjoin.values import QUOTIENTS, AttributeValue, attribute_size, canonical_number, exact_sum

DistinctOf: TypeAlias = Literal["Count", "Sum", "Avg"]
"""What is computed from the different nodes: their number, or the sum or the mean of a field of theirs."""
VERSION, NODES = "adjoin:v", "adjoin:n"
"""The parts of the attribute of a reached set."""
ALL_SETS = 300_000
"""How many bytes the reached sets of one node may take together. An item can have 400 KB, and has other attributes."""


def text_of(node_key: str, number: AttributeValue | None = None) -> str:
    """The text of a node in a reached set; `number` is the value of its field, if that is added up."""
    return node_key if number is None else f"{canonical_number(number['N'])} {node_key}"


# --- on nodes ----------------------------------------------------------------------------------


def is_reached_set(value: AttributeValue | None) -> bool:
    """Whether an attribute has the form of a reached set on a node."""
    return value is not None and "M" in value and value["M"].keys() == {VERSION, NODES}


def reached_set(edges: Mapping[str, int]) -> AttributeValue | None:
    """The attribute for the number of edges by text, with a new version; None for an empty set."""
    if not edges:
        return None
    version = b64encode(urandom(6)).decode()
    return {"M": {VERSION: {"S": version}, NODES: {"B": _packed(edges)}}}


def edges_by_text(value: AttributeValue | None) -> dict[str, int]:
    """The number of edges by text; empty without an attribute. Raises `InvalidValue` if it is no reached set."""
    if value is None:
        return {}
    try:
        found = _unpacked(value["M"][NODES]["B"])
        if value.keys() == {"M"} and isinstance(found, dict) and all(map(_is_number, found.values())):
            return found
    except _UNREADABLE:
        pass
    raise InvalidValue("the set of nodes that it leads to was changed by another program; run verify --repair")


def texts_in(value: AttributeValue | None) -> list[str]:
    """The texts of a reached set. There are none if it cannot be read, or is a value of another declaration.

    An audit reports such an attribute on its own node, and when it is corrected, those who read it follow.
    """
    try:
        return [text for text, number in edges_by_text(value).items() if number > 0]
    except InvalidValue:
        return []


def leads_elsewhere(before: AttributeValue | None, after: AttributeValue | None) -> bool:
    """Whether a reached set has other texts than before. The numbers of edges do not matter to who reads it."""
    return {*texts_in(before)} != {*texts_in(after)}


def storage_problem(value: AttributeValue | None, distinct: DistinctOf, room: int) -> str | None:
    """Why a reached set cannot be stored, in words that follow its rule's name; None if it can."""
    if value is None:
        return None
    if (size := attribute_size(value)) > room:
        nodes = len(_numbers(value, distinct))
        return (
            f"it would lead to {nodes:,} different nodes, which take {size:,} bytes, and a node has room for "
            f"{room:,}; count them with a walk"
        )
    try:
        shown(value, distinct)
    except InvalidValue as problem:
        return str(problem)
    return None


def shown(value: AttributeValue | None, distinct: DistinctOf) -> AttributeValue | None:
    """What a field shows for a reached set; None for the mean of no nodes.

    Raises `InvalidValue` for a sum with too many digits.
    """
    numbers = _numbers(value, distinct)
    if distinct == "Count":
        return {"N": str(len(numbers))}
    total = exact_sum(map(Decimal, numbers.values()))
    if distinct == "Sum":
        return {"N": canonical_number(total)}
    return {"N": canonical_number(QUOTIENTS.divide(total, Decimal(len(numbers))))} if numbers else None


def _numbers(value: AttributeValue | None, distinct: DistinctOf) -> dict[str, str]:
    """The different nodes of a reached set, each with what it adds."""
    texts = sorted(text for text, number in edges_by_text(value).items() if number > 0)
    if distinct == "Count":
        return dict.fromkeys(texts, "1")
    split = (text.partition(" ") for text in texts)
    return {node_key: number for number, _, node_key in split}


# --- in ledgers --------------------------------------------------------------------------------


def packed_texts(texts: Iterable[str]) -> AttributeValue:
    """The texts that an edge contributes, as its ledger stores them."""
    return {"B": _packed(sorted(texts))}


def unpacked_texts(value: AttributeValue) -> list[str]:
    """The texts in a ledger, in order. Raises `ValueError` if another program wrote something else."""
    try:
        found = _unpacked(value["B"])
    except _UNREADABLE:
        raise ValueError from None
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise ValueError
    return found


# --- stored form -------------------------------------------------------------------------------


_UNREADABLE = KeyError, TypeError, ValueError, AttributeError, zlib.error


def _packed(content: Mapping[str, int] | list[str]) -> str:
    return b64encode(zlib.compress(dumps(content, option=OPT_SORT_KEYS))).decode()


def _unpacked(stored: str) -> dict[str, int] | list[str]:
    found: dict[str, int] | list[str] = loads(zlib.decompress(b64decode(stored)))
    return found


def _is_number(found: object) -> bool:
    return type(found) is int
