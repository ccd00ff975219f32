"""Which items are read: all of a small table, and of a larger one some from many places.

On DynamoDB, segments of a scan are ranges of hashed partition keys, so the first pages of several are as good as a
random choice. A file is read in the order of its keys, so its first pages may be of one class only; `spread` goes from
one beginning of keys to the next instead.
An export has no definition of its table; the keys are then told by the items.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from adjoin.errors import InvalidExport
from adjoin.requests import Get, ItemResponse, PageResponse, Plan, Scan
from adjoin.reserved import MARK, OWN, RECORDS, is_own_partition
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
    if is_large:
        found |= yield from _records(definition)
    return [*found.values()]


def _records(definition: TableDefinition) -> Plan[dict[str, Item]]:
    """adjoin's own records of the whole table."""
    if definition.sort is None or {key.type for key in definition.keys} != {"S"}:
        return {}
    attributes = [index.partition.name for index in definition.indexes]
    records = [(f"{OWN}MAINTAIN", "=rules"), *((OWN + RECORDS, f"{MARK}SHARDS#{name}") for name in attributes)]
    answers: list[ItemResponse] = yield tuple(
        Get(definition.name, {definition.partition.name: {"S": one}, definition.sort.name: {"S": other}})
        for one, other in records
    )
    return {_key(definition, answer.item): answer.item for answer in answers if answer.item is not None}


_LOOK = 40
"""How many items are read at each place of a file."""
_MOST_BEGINNINGS = 200
_PLACES_A_ROUND = 16
_LETTERS = "0Aa5Kk9Tt2Ff7Pp1Dd4Hh8Rr3Gg6Ww"
_BEGINNING = re.compile(r"[^#|:/]*[#|:/]|[^0-9]+|.", re.DOTALL)
_LAST = "\U0010ffff"
_GREATEST: dict[KeyType, str] = {"S": _LAST, "N": "9.9E+125", "B": "/////w=="}


def spread(definition: TableDefinition, number: int) -> Plan[list[Item]]:
    """Up to a number of items from many places of a table that is scanned in the order of its keys, as a file is.

    First a few of each beginning that partition keys have, such as "STUDENT#"; then more from the middle of each. And
    adjoin's own records of the whole table, as in `sampled`.
    """
    if definition.partition.type != "S":
        return (yield from sampled(definition, number, is_large=True))
    found = _Spread(definition)
    beginnings: dict[str, None] = {}
    start: Item | None = None
    while len(beginnings) < _MOST_BEGINNINGS and len(found.items) < number:
        page: PageResponse
        (page,) = yield (Scan(definition.name, start=start, limit=_LOOK),)
        texts = found.add(page)
        beginnings |= dict.fromkeys(match[0] for text in texts if (match := _BEGINNING.match(text)))
        if page.last is None:
            break
        start = _place(definition, next(reversed(beginnings)) + _LAST)
    places = [_place(definition, beginning + letter) for letter in _LETTERS for beginning in beginnings]
    each = max(_LOOK // 2, number // max(1, len(places)))
    while places and len(found.items) < number:
        pages: list[PageResponse] = yield tuple(
            Scan(definition.name, start=place, limit=each) for place in places[:_PLACES_A_ROUND]
        )
        for page in pages:
            found.add(page)
        # Where keys begin alike for longer, several places are the same one; then it goes on from there.
        onward = {_key(definition, page.last): page.last for page in pages if page.last is not None}
        places = [*places[_PLACES_A_ROUND:], *onward.values()]
    mine = itertools.islice(found.items.values(), number)
    own = dict(itertools.islice(found.own.items(), number)) | (yield from _records(definition))
    return [*mine, *own.values()]


class _Spread:
    """What was read so far. adjoin's own items tell of declarations, and do not count."""

    def __init__(self, definition: TableDefinition) -> None:
        self._definition = definition
        self.items: dict[str, Item] = {}
        self.own: dict[str, Item] = {}

    def add(self, page: PageResponse) -> list[str]:
        """Adds the items of a page, and returns their partition keys."""
        name = self._definition.partition.name
        texts = []
        for item in page.items:
            text = item[name]["S"]
            texts.append(text)
            (self.own if is_own_partition(text) else self.items)[_key(self._definition, item)] = item
        return texts


def _place(definition: TableDefinition, text: str) -> Item:
    """The place behind all items with this partition key."""
    sort = definition.sort
    key: Item = {definition.partition.name: {"S": text}}
    return key if sort is None else key | {sort.name: {sort.type: _GREATEST[sort.type]}}


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
            f"the items do not show the keys of the table {table}; name them, as in --keys PK,SK, or --keys id"
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
