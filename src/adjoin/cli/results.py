"""Nodes, edges and what walks find, as a line of text or of JSON.

An id that is printed is one that can be typed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from adjoin.cli.drawing import printable
from adjoin.exchange import texts
from adjoin.exchange.texts import field_values
from adjoin.model import Child, Edge, Node, Ref, node_id
from adjoin.plans.walk_results import WalkPath


def as_json(found: Any) -> str:
    """One line. It has only ASCII characters, so that it is complete in every encoding of stdout."""
    match found:
        case WalkPath():
            found = {"nodes": texts.plain(found.nodes), "edges": texts.plain(found.edges)}
        case (Edge() as edge, node):
            found = {"edge": texts.plain(edge), "node": texts.plain(node)}
    return texts.as_json(found, is_ascii=True)


def as_text(found: Any) -> str:
    """One line for a person."""
    match found:
        case Node() | Edge():
            return f"{named(found)}  {', '.join(f'{name}: {text}' for name, text in details(found))}".rstrip()
        case Ref():
            return named(found)
        case WalkPath():
            return " → ".join(map(named, found.nodes))
        case (Edge() as edge, node):
            far = "the node does not exist" if node is None else as_text(node)
            return f"{as_text(edge)}  |  {far}"
    return printable(texts.text_of(found))


def named(found: Any) -> str:
    """The class of a node or an edge and its id, or its ends."""
    match found:
        case Edge():
            return f"{type(found).__name__} {_id(found.source)} → {_id(found.target)}"
        case Node():
            return f"{type(found).__name__} {_id(node_id(found))}"
        case Ref():
            return f"{found.model.__name__} {_id(found.id)}"
    return printable(texts.text_of(found))


def details(found: BaseModel) -> Iterator[tuple[str, str]]:
    """The fields beyond the id that have a value, with their values as text."""
    known: set[str] = set()
    if isinstance(found, Edge):
        known = {"source", "target"}
    elif isinstance(found, Node):
        own = ("parent",) if isinstance(found, Child) else ()
        known = {*own, *type(found).__declaration__.key}
    for name, value in field_values(found):
        if name not in known and value is not None:
            yield printable(name), printable(texts.text_of(value))


def _id(id: Any) -> str:
    return printable(texts.id_text(id))
