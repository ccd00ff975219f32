"""Which items are read: all of a small table, and of a larger one some from many places.

Segments of a scan are ranges of hashed partition keys, so the first pages of several are as good as a random choice.
An export has no definition of its table; the keys are then told by the items.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from adjoin.errors import InvalidExport
from adjoin.requests import Get, ItemResponse, PageResponse, Plan, Scan
from adjoin.reserved import MARK, OWN, RECORDS
from adjoin.tables import IndexDefinition, KeyAttribute, KeyType, TableDefinition
from adjoin.values import Item

SEGMENTS = 16
_PAGE = 250
_HASH, _RANGE = (
    ("pk", "partitionkey", "hashkey", "hash", "partition", "id"),
    ("sk", "sortkey", "rangekey", "range", "sort"),
)


def sampled(definition: TableDefinition, number: int, *, is_large: bool) -> Plan[list[Item]]:
    """Up to a number of items, and adjoin's own records of the whole table, which tell of its declarations."""
    segments = SEGMENTS if is_large else 1
    starts: dict[int, Item | None] = dict.fromkeys(range(segments))
    found: dict[str, Item] = {}
    while starts and len(found) < number:
        left = -(-(number - len(found)) // len(starts))
        pages: list[PageResponse] = yield tuple(
            Scan(
                definition.name,
                start=start,
                segment=None if segments == 1 else (segment, segments),
                limit=min(_PAGE, left) if is_large else left,
            )
            for segment, start in starts.items()
        )
        found |= {_key(definition, item): item for page in pages for item in page.items}
        starts = {segment: page.last for segment, page in zip(starts, pages, strict=True) if page.last is not None}
    if is_large and definition.sort is not None and {key.type for key in definition.keys} == {"S"}:
        attributes = [index.partition.name for index in definition.indexes]
        records = [(f"{OWN}MAINTAIN", "=rules"), *((OWN + RECORDS, f"{MARK}SHARDS#{name}") for name in attributes)]
        answers: list[ItemResponse] = yield tuple(
            Get(definition.name, {definition.partition.name: {"S": one}, definition.sort.name: {"S": other}})
            for one, other in records
        )
        found |= {_key(definition, answer.item): answer.item for answer in answers if answer.item is not None}
    return [*found.values()]


def _key(definition: TableDefinition, item: Item) -> str:
    return str([item[key.name] for key in definition.keys])


def chosen(files: Sequence[Iterable[Item]], number: int) -> list[Item]:
    """Up to a number of items, as many from each file."""
    each = -(-number // max(len(files), 1))
    return list(itertools.islice((item for file in files for item in itertools.islice(file, each)), number))


# --- the definition of an exported table -------------------------------------------------------


def definition_in(table: str, items: Sequence[Item], keys: Sequence[str] = ()) -> TableDefinition:
    """The definition that items tell: keys that are in all of them and differ, and indexes by the names of attributes.

    `keys` are the names of the partition key and the sort key, if they are known.
    """
    types = _types(items)
    chosen = [*keys] or _keys(items, types)
    for name in chosen:
        if name not in types:
            raise InvalidExport(f"not every item has the attribute {name!r} as text, number or binary; name other keys")
    if not chosen or not _are_unique(items, chosen):
        raise InvalidExport(
            f"the items do not tell the keys of the table {table}; name them, as in --keys PK,SK, or --keys id"
        )
    attributes = [KeyAttribute(name, types[name]) for name in chosen]
    names = dict.fromkeys(name for item in items for name in item)
    indexes: dict[str, dict[str, str]] = {}
    for name in names:
        found = re.fullmatch(r"(?i)([gl]si[_-]?\d+)[_-]?(pk|sk|hash|range|partitionkey|sortkey)", name)
        if found is not None and name not in chosen:
            role = "partition" if found[2].lower() in _HASH else "sort"
            indexes.setdefault(found[1], {})[role] = name
    return TableDefinition(
        table,
        attributes[0],
        attributes[1] if len(attributes) > 1 else None,
        tuple(
            IndexDefinition(
                name, KeyAttribute(given["partition"]), KeyAttribute(given["sort"]) if "sort" in given else None
            )
            for name, given in indexes.items()
            if "partition" in given
            and all("S" in item[each] for each in given.values() for item in items if each in item)
        ),
    )


def _types(items: Sequence[Item]) -> dict[str, KeyType]:
    """The attributes that all items have, with one type that a key may have."""
    found: dict[str, KeyType] = {}
    for name in items[0] if items else ():
        tags = {next(iter(item.get(name, {})), "") for item in items}
        for tag in ("S", "N", "B"):
            if tags == {tag}:
                found[name] = tag
    return found


def _keys(items: Sequence[Item], types: dict[str, KeyType]) -> list[str]:
    plain = {re.sub("[^a-z]", "", name.lower()): name for name in types}
    hashes = [plain[name] for name in _HASH if name in plain]
    ranges = [plain[name] for name in _RANGE if name in plain]
    pairs = [[one, other] for one in hashes for other in ranges]
    candidates = [*pairs, *([each] for each in hashes), *([each] for each in types if each.lower().endswith("id"))]
    candidates += [[one, other] for one in types for other in types if one != other]
    return next((each for each in candidates if _are_unique(items, each)), [])


def _are_unique(items: Sequence[Item], names: Sequence[str]) -> bool:
    return len({str([item[name] for name in names]) for item in items}) == len(items)
