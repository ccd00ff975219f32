"""Compares what is in a file, when all is over, with what the journals say must be there.

It reads the rows by themselves, and counts by hand: what it finds owes nothing to the code that is judged, but that of
the file's own format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import apsw

from adjoin import Graph, Node
from adjoin.requests import PageResponse, Scan
from adjoin.stores.sqlite import SQLiteStore
from adjoin.values import Item
from tests.whole import models
from tests.whole.journal import Broken, Told, Values, owner_of
from tests.whole.subjects import plain


def judge(path: Path, copy: Path, journals: Mapping[str, Told]) -> None:
    """Raises `Broken` with all that does not hold. Nobody writes any more, and the stream is applied."""
    items, plain_items = rows(path, models.TABLE), rows(path, plain.TABLE)
    found = stored(items) | {f"item:{item['PK']['S']}": int(item["n"]["N"]) for item in plain_items}
    counter = found.pop("item:all", 0)
    told = list(journals.items())
    wrong = [
        *_missing(told, found),
        *_wrong_counts(told, items, counter),
        *_wrong_aggregates(items),
        *_unsound(path),
    ]
    if rows(copy, models.TABLE) != items:
        wrong.append("the copy differs from its source")
    with Graph(path, models.MODELS) as g:
        wrong += [f"the audit found {finding}" for finding in g.verify().findings]
        wrong += [f"{aside} was set aside" for aside in g.maintain(once=True).set_aside]
    if wrong:
        raise Broken("\n".join(wrong[:20]))


def finish_deletes(path: Path, journals: Mapping[str, Told]) -> None:
    """Runs those deletes again of which nobody knows how they ended."""
    classes: dict[str, type[Node]] = {"person": models.Person, "hub": models.Hub}
    with Graph(path, models.MODELS) as g:
        for told in journals.values():
            for operation, _ in told.doubtful:
                if operation.kind == "delete":
                    (owner,) = operation.owners
                    kind = "person" if f"person:{owner}" in operation.changes else "hub"
                    g.delete(classes[kind], owner)


def rows(path: Path, table: str) -> list[Item]:
    store = SQLiteStore(path)
    try:
        found: list[Item] = []
        start = None
        while True:
            (page,) = store.execute([Scan(table, start=start)])
            assert isinstance(page, PageResponse)
            found += page.items
            if page.last is None:
                return found
            start = page.last
    finally:
        store.close()


def _is_ours(item: Item) -> bool:
    """Whether adjoin keeps it for itself."""
    return "#=" in item["PK"]["S"] or item["SK"]["S"].startswith("=")


def stored(items: list[Item]) -> Values:
    """The rows under the keys of journals."""
    found: Values = {}
    for item in items:
        if _is_ours(item):
            continue
        kind, owner = item["PK"]["S"].split("#")
        edge, *rest = item["SK"]["S"].split("#")
        if (kind, edge, rest) == ("PERSON", "", ["META"]):
            found[f"person:{owner}"] = [item["name"]["S"], item["email"]["S"], int(item["points"]["N"])]
        elif (kind, edge, rest) == ("HUB", "", ["META"]):
            found[f"hub:{owner}"] = True
        elif (kind, edge, rest) == ("TOPIC", "", ["META"]):
            found[f"topic:{owner}"] = item["name"]["S"]
        elif (kind, edge) == ("PERSON", "FOLLOWS"):
            found[f"follows:{owner}:{rest[1]}"] = int(item["weight"]["N"])
        elif (kind, edge) == ("HUB", "LISTED"):
            found[f"listed:{owner}:{rest[1]}:{item['number']['N']}"] = True
        else:
            raise Broken(f"nobody wrote {item}")
    return found


def _missing(journals: list[tuple[str, Told]], found: Values) -> Iterator[str]:
    left = dict(found)
    for name, told in journals:
        if told.unfinished is not None:
            yield f"{name}: {told.unfinished} was never finished"
        barred = told.barred
        for key, value in told.values.items():
            if owner_of(key) in barred:
                continue
            if left.pop(key, None) != value:
                yield f"{name}: {key} was acknowledged with {value!r}, and there is {found.get(key)!r}"
        yield from _wrong_doubts(name, told, found)
        for key in [key for key in left if owner_of(key) in barred]:
            del left[key]
    for key, value in left.items():
        yield f"nobody wrote {key}, and there is {value!r}"


def _wrong_doubts(name: str, told: Told, found: Values) -> Iterator[str]:
    """What may be there and may not is there whole, or not at all; all else of the same owners is as it was."""
    for operation, before in told.doubtful:
        here = {key: value for key, value in found.items() if owner_of(key) in operation.owners}
        if operation.kind == "delete":
            # It was run again since.
            if here:
                yield f"{name}: {operation} was run to its end, and there is {here}"
            continue
        must = {key: value for key, value in before.items() if owner_of(key) in operation.owners}
        if not operation.permits(before, here):
            yield f"{name}: {operation} is neither done nor not: {here}"
        for key in (must.keys() | here.keys()) - operation.changes.keys():
            if here.get(key) != must.get(key):
                yield f"{name}: {key} was {must.get(key)!r} beside {operation}, and is {here.get(key)!r}"


def _wrong_counts(journals: list[tuple[str, Told]], items: list[Item], counter: int) -> Iterator[str]:
    """Counters that several count up: no less than was acknowledged, no more than was asked for."""
    least: Counter[str] = sum((told.added for _, told in journals), Counter())
    perhaps: Counter[str] = sum((told.perhaps_added for _, told in journals), Counter())
    topics = {item["PK"]["S"].split("#")[1]: item for item in items if item["SK"]["S"] == "#META" and "visits" in item}
    found = {f"visits:{topic}": int(item["visits"]["N"]) for topic, item in topics.items()}
    found["counts:all"] = counter
    for key, count in found.items():
        if not least[key] <= count <= least[key] + perhaps[key]:
            yield f"{key} is {count}, and {least[key]} were acknowledged, {perhaps[key]} more are unknown"


def _wrong_aggregates(items: list[Item]) -> Iterator[str]:
    """Counted by hand from the edges that are there."""
    weights: dict[str, list[int]] = {topic: [] for topic in models.TOPICS}
    listed: Counter[str] = Counter()
    follows: Counter[str] = Counter()
    copies: list[tuple[str, str, str]] = []
    nodes: dict[str, Item] = {}
    for item in items:
        if _is_ours(item):
            continue
        edge, *rest = item["SK"]["S"].split("#")
        if edge == "":
            nodes[item["PK"]["S"]] = item
        elif edge == "LISTED":
            listed[rest[1]] += 1
        else:
            weights[rest[1]].append(int(item["weight"]["N"]))
            follows[item["PK"]["S"]] += 1
            copies.append((item["PK"]["S"], rest[1], item["topic"]["S"]))
    for topic, values in weights.items():
        node = nodes[f"TOPIC#{topic}"]
        greatest = sorted(values, reverse=True)
        must: dict[str, Any] = {
            "followers": len(values),
            "weight": sum(values),
            "heaviest": greatest[0] if greatest else None,
            "top": greatest[:3],
            "listed": listed[topic],
        }
        for name, value in must.items():
            if _plain(node.get(name)) not in ([value] if value else [value, None]):
                yield f"{topic}.{name} is {_plain(node.get(name))}, and counting by hand gives {value}"
    for key, node in nodes.items():
        if key.startswith("PERSON#") and (_plain(node.get("follows")) or 0) != follows[key]:
            yield f"{key} has {follows[key]} edges, and counts {_plain(node.get('follows'))}"
    for person, topic, copied in copies:
        name = nodes[f"TOPIC#{topic}"]["name"]["S"]
        if copied != name:
            yield f"the edge of {person} repeats {copied!r} of {topic}, which is {name!r}"


def _plain(value: Any) -> Any:
    if value is None or "NULL" in value:
        return None
    return [int(each["N"]) for each in value["L"]] if "L" in value else int(value["N"])


def _unsound(path: Path) -> Iterator[str]:
    connection = apsw.Connection(str(path))
    for (said,) in connection.execute("PRAGMA integrity_check"):
        if said != "ok":
            yield f"SQLite finds in the file: {said}"
    connection.close()
