"""Items into groups whose keys have one shape: literals, and columns of values between them.

A key such as STUDENT#S1 is split into tokens. Whether a token is a label or a value is decided for all keys with the
same separators together, from the left: the first token of several is a label if it is a word, the token after a label
is a value, and a word that never changes after a value is a label again. Words that divide items with different
attributes divide groups. A token that some attribute of the item repeats is a value.

An attribute that names the type of each item, in whatever form, is believed before the keys.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

from adjoin.dataclass import dataclass
from adjoin.inferring.splitting import KeyTokens, Splitter, is_word, splitter_of
from adjoin.tables import TableDefinition
from adjoin.values import Item

KeyShape: TypeAlias = tuple[str | int, ...]
"""A key: literals, and the numbers of the columns between them."""

_TYPE_NAMES = frozenset(
    (
        *(
            "type",
            "entitytype",
            "itemtype",
            "kind",
            "entity",
            "recordtype",
            "objecttype",
            "model",
            "modeltype",
            "class",
        ),
        *("doctype", "typename", "et", "discriminator", "modelname", "entityname", "nodetype", "documenttype"),
    )
)
_FEW = 5
"""How many types even a small table may have."""
_ALIKE = 0.8
"""Two sets of names that have this share in common are of one class."""
_OFTEN = 5
"""How many items with each of a few words there are, if these words are labels and not values."""
_MOST_ENDS = 4
"""How many words that end sort keys, among values that are no words, are taken for labels."""
_MOST_CLASSES = 12
"""How many words at one place are taken for labels, if the items with them have the same attributes."""


@dataclass
class Group:
    """Items with keys of one shape."""

    partition: KeyShape
    sort: KeyShape
    items: list[Item]
    columns: list[list[str]]
    """The texts of each column, in the order of the items."""
    word: str | None = None
    """What the items have in the type attribute."""

    @property
    def labels(self) -> list[str]:
        """The words in the keys, those of the sort key first."""
        texts = [each for shape in (self.sort, self.partition) for each in shape if isinstance(each, str)]
        return [word for text in texts for word in re.findall(r"[A-Za-z][A-Za-z0-9 _.\-]*", text)]


@dataclass(frozen=True)
class Grouping:
    groups: list[Group]
    type_attribute: str | None
    splitter: Splitter


@dataclass(frozen=True)
class _Row:
    item: Item
    word: str | None
    partition: KeyTokens
    sort: KeyTokens

    @property
    def tokens(self) -> tuple[str, ...]:
        return (*self.partition.tokens, *self.sort.tokens)

    @property
    def skeleton(self) -> tuple[object, ...]:
        return self.partition.separators, self.sort.separators


def grouped(definition: TableDefinition, items: Sequence[Item]) -> Grouping:
    """The groups of the items of a table, the largest first."""
    name = type_attribute_of(definition, items)
    found = _grouped(definition, items, name)
    shapes = Counter((group.partition, group.sort) for group in found.groups)
    if name is not None and any(number > 1 for number in shapes.values()):
        # Items of two types have the same keys, so the keys do not say the type: it is a field like others.
        return _grouped(definition, items, None)
    return found


def _grouped(definition: TableDefinition, items: Sequence[Item], name: str | None) -> Grouping:
    texts = {
        key.name: [item[key.name]["S"] for item in items if "S" in item.get(key.name, {})]
        for key in definition.key_attributes
        if key.type == "S"
    }
    splitter = splitter_of(texts)
    keys = {key.name for key in definition.key_attributes} | ({name} if name else set())
    rows = [
        _Row(
            item,
            item[name]["S"] if name else None,
            _split(splitter, item, definition.partition.name, definition.partition.type),
            KeyTokens((), ())
            if definition.sort is None
            else _split(splitter, item, definition.sort.name, definition.sort.type),
        )
        for item in items
    ]
    words = {row.word.upper() for row in rows if row.word}
    labels = _labels(splitter, texts)
    divided = _Dividing(labels, words, frozenset(keys), _are_upper(splitter, texts))
    clusters: dict[object, list[_Row]] = defaultdict(list)
    for row in rows:
        clusters[(row.word, row.skeleton)].append(row)
    groups = [group for cluster in clusters.values() for group in divided.groups(cluster, definition)]
    groups.sort(key=lambda group: (-len(group.items), str(group.partition), str(group.sort)))
    return Grouping(groups, name, splitter)


def _split(splitter: Splitter, item: Item, name: str, type: str) -> KeyTokens:
    text: str = item[name][type]
    return splitter.split(text, name) if type == "S" else KeyTokens((text,), ())


def type_attribute_of(definition: TableDefinition, items: Sequence[Item]) -> str | None:
    keys = {key.name for key in definition.key_attributes}
    for name in items[0] if items else ():
        if name in keys or not _names_type(name):
            continue
        values = [item.get(name, {}).get("S") for item in items]
        words = {value for value in values if value}
        if all(values) and len(words) <= max(_FEW, len(values) / 2) and not any({*"{}"} & {*word} for word in words):
            return name
    return None


def _names_type(name: str) -> bool:
    """Whether an attribute of this name usually says the type of its item."""
    return re.sub("[^a-z]", "", name.lower()) in _TYPE_NAMES


def _are_upper(splitter: Splitter, texts: Mapping[str, Sequence[str]]) -> bool:
    """Whether most keys of several tokens begin with a word in upper case, so that labels of the table are so."""
    first = [
        split.tokens[0]
        for name, each in texts.items()
        for split in (splitter.split(text, name) for text in each)
        if len(split.tokens) > 1 and is_word(split.tokens[0])
    ]
    return sum(token.isupper() for token in first) > 0.9 * len(first)


def _labels(splitter: Splitter, texts: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """The words that begin keys of several tokens."""
    rests: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for name, each in texts.items():
        for text in each:
            tokens = splitter.split(text, name).tokens
            if len(tokens) > 1 and is_word(tokens[0]):
                rests[tokens[0]].add(tokens[1:])
    return frozenset(word for word, found in rests.items() if len(found) > 1 or word.isupper())


@dataclass(frozen=True)
class _Dividing:
    """Divides rows with the same separators, token by token."""

    labels: frozenset[str]
    types: set[str]
    keys: frozenset[str]
    are_upper: bool
    """Whether the labels of the table are in upper case, so that other words are values."""

    def groups(self, rows: list[_Row], definition: TableDefinition) -> list[Group]:
        return [self._group(found, literals, definition) for found, literals in self._divided(rows, 0, ())]

    def _divided(
        self, rows: list[_Row], at: int, literals: tuple[bool, ...]
    ) -> list[tuple[list[_Row], tuple[bool, ...]]]:
        """The rows in parts, each with which of its tokens are literals."""
        if at == len(rows[0].tokens):
            return [(rows, literals)]
        if not self._is_label(rows, at, literals):
            constant = self._constants(rows, at)
            others = [row for row in rows if row.tokens[at] not in constant]
            found = [
                each
                for token in sorted(constant)
                for each in self._divided([row for row in rows if row.tokens[at] == token], at + 1, (*literals, True))
            ]
            return [*found, *self._divided(others, at + 1, (*literals, False))]
        parts: dict[str, list[_Row]] = defaultdict(list)
        for row in rows:
            parts[row.tokens[at]].append(row)
        return [found for part in parts.values() for found in self._divided(part, at + 1, (*literals, True))]

    def _is_label(self, rows: list[_Row], at: int, literals: tuple[bool, ...]) -> bool:
        length = len(rows[0].partition.tokens)
        is_sort = at >= length
        place = at - length if is_sort else at
        last = len(rows[0].sort.tokens if is_sort else rows[0].partition.tokens) - 1
        tokens = {row.tokens[at] for row in rows}
        if tokens == {""}:
            return True
        if not all(map(is_word, tokens)):
            return self._is_constant(rows, at, is_bare=last == 0)
        if {token.upper() for token in tokens} <= self.types and len(tokens) == 1:
            return True
        if self._is_repeated(rows, at):
            return False
        if place == 0 and last > 0:
            return self._are_labels(rows, at, tokens, literals)
        if last == 0:
            return self._is_bare_label(rows, at, tokens, is_sort)
        follows_label = literals[at - 1] and rows[0].tokens[at - 1] != ""
        if tokens <= self.labels and place < last:
            return True
        if follows_label:
            return False
        if self.are_upper and not all(token.isupper() for token in tokens):
            return False
        if len(tokens) == 1:
            return len(rows) > 1 or next(iter(tokens)).isupper()
        return rows[0].word is None and self._differ(rows, at)

    def _constants(self, rows: list[_Row], at: int) -> set[str]:
        """Words of several items among values that are no words.

        They are whole partition keys, such as COUNTER, or end sort keys, such as v#latest beside v#0001.
        """
        length = len(rows[0].partition.tokens)
        is_end = at >= length and at == len(rows[0].tokens) - 1
        if rows[0].word is not None or not (is_end or (at == 0 and length == 1)):
            return set()
        counts = Counter(row.tokens[at] for row in rows)
        words = {token for token, number in counts.items() if number > 1 and is_word(token)}
        words = words if is_end else {token for token in words if token.isupper()}
        rest = [row for row in rows if row.tokens[at] not in words]
        are_words = [is_word(row.tokens[at]) for row in rest]
        if not rest or len(words) > _MOST_ENDS or (any(are_words) if is_end else all(are_words)):
            return set()
        named = {name for row in rest for name in row.item} - self.keys
        most = _ALIKE if is_end else 0
        found = set()
        for token in words:
            own = {name for row in rows if row.tokens[at] == token for name in row.item} - self.keys
            if len(named & own) <= most * len(named | own):
                found.add(token)
        return found

    def _is_constant(self, rows: list[_Row], at: int, *, is_bare: bool) -> bool:
        """Whether a token that is no word is one, because it never changes: "v0"."""
        tokens = {row.tokens[at] for row in rows}
        others = {row.tokens[:at] + row.tokens[at + 1 :] for row in rows}
        return is_bare and len(tokens) == 1 and len(others) >= 5 and not self._is_repeated(rows, at)

    def _are_labels(self, rows: list[_Row], at: int, tokens: set[str], literals: tuple[bool, ...]) -> bool:
        if len(tokens) == 1:
            return True
        if all(token.isupper() for token in tokens):
            return len(tokens) <= _MOST_CLASSES or self._differ(rows, at)
        if rows[0].word is not None:
            return False
        most = _MOST_CLASSES // 2
        if (
            at
            and literals[0]
            and len(tokens) <= most
            and min(Counter(row.tokens[at] for row in rows).values()) >= _OFTEN
        ):
            # After a label in the partition key, few words that come often are labels, too: follower#2, following#2.
            return True
        return len(tokens) <= max(most, len(rows) // 4) and self._differ(rows, at)

    def _is_bare_label(self, rows: list[_Row], at: int, tokens: set[str], is_sort: bool) -> bool:
        """Whether the only token of a key is a constant, such as METADATA."""
        other = slice(0, at) if is_sort else slice(at + 1, None)
        beside = {row.tokens[other] for row in rows}
        if len(tokens) == 1:
            (token,) = tokens
            return len(beside) > 1 or token.isupper()
        if rows[0].word is not None:
            return False
        counts = Counter(row.tokens[at] for row in rows)
        is_few = len(tokens) <= max(4, len(rows) // 5)
        return is_few and (min(counts.values()) > 1 or all(map(str.isupper, tokens))) and self._differ(rows, at)

    def _is_repeated(self, rows: list[_Row], at: int) -> bool:
        """Whether an attribute of each item has the token as its value."""
        names: set[str] | None = None
        for row in rows:
            token = row.tokens[at].lower()
            same = {
                name
                for name, value in row.item.items()
                if name not in self.keys and not _names_type(name) and value.get("S", "").lower() == token
            }
            names = same if names is None else names & same
            if not names:
                return False
        return True

    def _differ(self, rows: list[_Row], at: int) -> bool:
        """Whether the items with different tokens have different attributes, or other words in their keys."""
        names: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            words = (f"#{place} {token}" for place, token in enumerate(row.tokens) if place > at and is_word(token))
            names[row.tokens[at]].update(row.item.keys() - self.keys, words)
        return all(len(one & other) < _ALIKE * len(one | other) for one, other in combinations(names.values(), 2))

    def _group(self, rows: list[_Row], literals: tuple[bool, ...], definition: TableDefinition) -> Group:
        columns: list[list[str]] = []
        length = len(rows[0].partition.tokens)

        def shape(split: KeyTokens, first: int) -> KeyShape:
            pieces: list[str | int] = [""]
            before = len(columns)
            for place, token in enumerate(split.tokens):
                if place:
                    pieces[-1] = f"{pieces[-1]}{split.separators[place - 1]}"
                if literals[first + place]:
                    pieces[-1] = f"{pieces[-1]}{token}"
                else:
                    texts = [row.tokens[first + place] for row in rows]
                    pieces += [_column(columns, texts, {*range(before)} - {*pieces}), ""]
            return tuple(piece for piece in pieces if piece != "")

        partition = shape(rows[0].partition, 0)
        sort = shape(rows[0].sort, length) if definition.sort is not None else ()
        return Group(partition, sort, [row.item for row in rows], columns, rows[0].word)


def _column(columns: list[list[str]], texts: list[str], others: set[int]) -> int:
    """The number of a column with these texts: that of an equal one among others, or a new one."""
    if len({*texts}) > 1 or len(texts[0]) > 1:
        for number in sorted(others):
            if columns[number] == texts:
                return number
    columns.append(texts)
    return len(columns) - 1
