"""Classes from groups: names, types, key templates, and the attributes that keys are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field

from adjoin.dataclass import dataclass
from adjoin.inferring.grouping import Group, Grouping, KeyShape
from adjoin.inferring.hints import TEXT, Hint, hint_of, key_hint
from adjoin.inferring.matching import KeyPieces, Matching, OfColumn, OfField, same_as
from adjoin.inferring.naming import class_name, field_name, is_generic, words_of
from adjoin.inferring.program import FieldSpec, ModelSpec
from adjoin.inferring.roles import NODE, Role, ids, is_alone
from adjoin.inferring.splitting import is_word
from adjoin.reserved import ATTRIBUTE
from adjoin.tables import TableDefinition

MOST_FIELDS = 60
"""How many attributes of a class become fields. Attributes with names of their own for each item are no fields."""


@dataclass
class DraftColumn:
    """A column of the keys of a group."""

    name: str
    hint: Hint
    transform: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    """Attributes that repeat it, each with the transform."""
    is_constant: bool = False


@dataclass
class Draft:
    """A group on its way to a class."""

    group: Group
    name: str
    role: Role
    columns: list[DraftColumn]
    left_out: set[str] = field(default_factory=set)
    """Attributes that stay unexplained, and names of indexes that the class is not in."""
    as_text: set[str] = field(default_factory=set)
    """Attributes that stay as they are stored, because a narrower type does not fit."""
    notes: list[str] = field(default_factory=list)
    hints: dict[str, Hint | None] = field(default_factory=dict)
    """The types of attributes, as far as they were asked for."""


class Drafting:
    """Makes classes of the groups of one table."""

    def __init__(self, definition: TableDefinition, grouping: Grouping) -> None:
        self.definition, self.grouping = definition, grouping
        self._keys = {key.name for key in definition.keys}
        self._index_keys = {key.name for index in definition.indexes for key in index.keys} - self._keys
        self._words = {group.word.upper() for group in grouping.groups if group.word}
        self._titles = {word for group in grouping.groups if is_alone(group) for word in _words_in(group.partition)[:1]}
        self._paths = {tuple(_words_in(group.sort)) for group in grouping.groups}

    def drafts(self) -> list[Draft]:
        taken: set[str] = set()
        drafts = []
        # Nodes have the first choice of names.
        for group in sorted(self.grouping.groups, key=lambda group: not is_alone(group)):
            name = class_name(self._title(group), taken)
            taken.add(name)
            drafts.append(Draft(group, name, NODE, self._columns(group)))
        return drafts

    def unseen(self, drafts: Sequence[Draft]) -> tuple[list[Draft], dict[tuple[int, int], int]]:
        """Nodes without items of their own, which the partition key of an index names beside others: TEACHER#SIMON.

        Also returns which column of which draft holds their ids.
        """
        alone = [draft.group for draft in drafts if is_alone(draft.group)]
        known = {group.partition[0] for group in alone}
        own = sum(group.partition == group.sort for group in alone)
        sorts = Counter(group.sort for group in alone if group.partition != group.sort)
        sort: KeyShape = sorts.most_common(1)[0][0] if sorts and sorts.total() > own else ()
        found: dict[str, Draft] = {}
        columns: dict[tuple[int, int], int] = {}
        for number, draft in enumerate(drafts):
            matching = Matching(draft.group, self.grouping.splitter, {}, self._words)
            for index in self.definition.indexes:
                parts = None if is_alone(draft.group) else matching.parts(index.partition.name)
                if parts is None or len(parts) < 2 or not isinstance(parts[-1], OfColumn):
                    continue
                column, label = parts[-1].column, "".join(each for each in parts[:-1] if isinstance(each, str))
                if column in draft.group.partition or label in known or not is_word(label[:-1]):
                    continue
                if label not in found:
                    name = class_name(label, {each.name for each in (*drafts, *found.values())})
                    group = Group((label, 0), sort or (label, 0), [], [[]])
                    found[label] = Draft(group, name, NODE, [DraftColumn("id", TEXT)])
                    found[label].notes.append(
                        f"no item of it was read, only keys of the index {index.name} name it; its sort key is a guess"
                    )
                found[label].group.columns[0] += draft.group.columns[column]
                columns[number, column] = len(drafts) + [*found].index(label)
        return [*found.values()], columns

    def columns_of(self, group: Group, *, as_text: bool) -> list[DraftColumn]:
        """The columns of a group; with `as_text`, all of them are text that no attribute repeats."""
        columns = self._columns(group)
        if as_text:
            for column in columns:
                if column.hint.tag == "S":
                    column.hint, column.transform, column.attributes = TEXT, "", {}
        return columns

    def _title(self, group: Group) -> str:
        if group.word:
            return group.word
        labels = group.labels
        sort = [word for word in _words_in(group.sort) if word.upper() not in _MEANINGLESS]
        partition = [word for word in _words_in(group.partition) if word.upper() not in _MEANINGLESS]
        if not is_alone(group) and len(sort) > 1 and tuple(sort[:-1]) in self._paths:
            # It is under an item of another class, such as STUDENT in COURSE#MATH#STUDENT#7.
            return sort[-1]
        if not is_alone(group) and sort:
            is_other = sort[0] in self._titles and len(sort) == 1 and partition
            return f"{partition[0]} {sort[0]}" if is_other else sort[-1] if sort[0] in self._titles else sort[0]
        if partition:
            extra = [word for word in sort if word not in partition]
            return " ".join([partition[0], *extra[:1]])
        return labels[0] if sort and labels else self.definition.name

    # --- columns -------------------------------------------------------------------------------

    def _columns(self, group: Group) -> list[DraftColumn]:
        taken: set[str] = set()
        made = []
        for number, texts in enumerate(group.columns):
            column = self._column(group, number, texts, taken)
            taken.add(column.name)
            made.append(column)
        own = ids(group)
        if len(own) == 1 and not made[own[0]].attributes and made[own[0]].name not in self._plain_names():
            made[own[0]].name = "id"
        return made

    def _plain_names(self) -> set[str]:
        return {field_name(key.name) for key in self.definition.keys if not is_generic(key.name)}

    def _column(self, group: Group, number: int, texts: list[str], taken: set[str]) -> DraftColumn:
        key = self._typed_key(group, number)
        if key is not None and key[1] != "S":
            values = [item[key[0]] for item in group.items]
            plain = hint_of("", values) or TEXT
            return DraftColumn(field_name(key[0], taken), Hint(plain.text, tag=key[1]))
        attributes, hint, transform = self._repeating(group, number, texts)
        if not transform and hint is None:
            hint = key_hint(texts)
            transform = "" if hint.text == "dt.date" and hint.stored is None else hint.in_key
        named = next(iter(attributes), None) or (key[0] if key and not is_generic(key[0]) else None)
        before = _label_before(group, number)
        name = field_name(named or self._label_in_index(group, texts) or before or "part", taken)
        bare = Hint((hint or TEXT).text, tag=(hint or TEXT).tag)
        return DraftColumn(name, bare, transform, attributes, len({*texts}) == 1 and len(texts) > 1)

    def _label_in_index(self, group: Group, texts: list[str]) -> str | None:
        """The word before a column in the partition key of an index, if that is all there is."""
        for index in self.definition.indexes:
            splits = [
                self.grouping.splitter.split(item[index.partition.name]["S"], index.partition.name)
                for item in group.items
                if "S" in item.get(index.partition.name, {})
            ]
            if len(splits) < len(group.items) or any(len(split.tokens) != 2 for split in splits):
                continue
            labels = {split.tokens[0] for split in splits}
            if len(labels) == 1 and [split.tokens[1] for split in splits] == texts and is_word(label := labels.pop()):
                return label
        return None

    def _typed_key(self, group: Group, number: int) -> tuple[str, str] | None:
        """The key attribute that is a column and nothing else, with its type."""
        for key, shape in zip(self.definition.keys, (group.partition, group.sort), strict=False):
            if shape == (number,):
                return key.name, key.type
        return None

    def _repeating(self, group: Group, number: int, texts: list[str]) -> tuple[dict[str, str], Hint | None, str]:
        """The attributes that repeat a column, each with its transform; the type and transform of the column."""
        found: dict[str, str] = {}
        hint: Hint | None = None
        transform = ""
        names = [name for name in group.items[0] if name not in self._keys | {self.grouping.type_attribute}]
        for name in names:
            if name.startswith(ATTRIBUTE) or (name in self._index_keys and is_generic(name)):
                continue
            same = same_as(texts, [item.get(name) for item in group.items])
            if same is None or not (len({*texts}) > 1 or self._is_named_for(group, number, name)):
                continue
            tag, spec = same
            if hint is not None and hint.tag != tag:
                continue
            if hint is None:
                narrow = key_hint(texts) if tag == "S" else Hint("int", tag="N")
                hint = Hint(narrow.text, tag=tag)
                transform = (
                    spec if tag == "N" else "" if narrow.stored is None and narrow.text == "dt.date" else narrow.in_key
                )
            found[name] = "" if tag == "N" else transform
        return found, hint, transform

    def _is_named_for(self, group: Group, number: int, name: str) -> bool:
        """Whether the name of an attribute says that it repeats a column, if its values cannot."""
        words = {*words_of(name)}
        return bool(words & {*words_of(_label_before(group, number) or "")}) or "id" in words

    # --- fields --------------------------------------------------------------------------------

    def fields(self, draft: Draft, templated: set[str]) -> tuple[list[FieldSpec], dict[str, str]]:
        """The fields of a class, and the names of the fields by their attributes."""
        group = draft.group
        counts = Counter(name for item in group.items for name in item)
        left = {*self._keys, self.grouping.type_attribute, *templated, *draft.left_out}
        left |= {name for column in draft.columns for name in column.attributes}
        names = [name for name in counts if name not in left and not name.startswith(ATTRIBUTE)]
        # Beyond this, a class would be hard to read. The most frequent attributes become fields, the others stay
        # unexplained.
        if len(names) > MOST_FIELDS:
            names = [name for name, _ in counts.most_common() if name in names][:MOST_FIELDS]
        taken = {column.name for column in draft.columns} | {"id"}
        found: list[FieldSpec] = []
        for name in names:
            spec = self._field(draft, name, counts[name], taken)
            if spec is not None:
                taken.add(spec.name)
                found.append(spec)
        found.sort(key=lambda each: each.is_optional)
        return found, {each.attribute or each.name: each.name for each in found}

    def _field(self, draft: Draft, attribute: str, count: int, taken: set[str]) -> FieldSpec | None:
        values = [item[attribute] for item in draft.group.items if attribute in item]
        is_optional, may_be_null = count < len(draft.group.items), any("NULL" in value for value in values)
        hint = self.hint(draft, attribute)
        # A field has one way to be None: absent, or null. If both occur, no field writes all items as they are.
        if hint is None or hint.tag == "NULL" or (is_optional and may_be_null):
            return None
        comment = "the table's time to live" if attribute == self.definition.ttl else ""
        return FieldSpec(field_name(attribute, taken), hint, attribute, is_optional, may_be_null, comment=comment)

    def hint(self, draft: Draft, attribute: str) -> Hint | None:
        known = draft.hints
        if attribute not in known:
            known[attribute] = hint_of(attribute, [item[attribute] for item in draft.group.items if attribute in item])
        hint = known[attribute]
        if hint is not None and attribute in draft.as_text:
            return Hint(
                {"S": "str", "N": "Decimal" if hint.text == "Decimal" else "int"}.get(hint.tag, "Any"), tag=hint.tag
            )
        return hint

    def hints(self, draft: Draft) -> dict[str, Hint]:
        """The attributes that may fill parts of index keys, with their types."""
        names = dict.fromkeys(name for item in draft.group.items for name in item)
        left = {*self._keys, *self._index_keys, self.grouping.type_attribute, *draft.left_out}
        left |= {name for column in draft.columns for name in column.attributes}
        found = {name: self.hint(draft, name) for name in names if name not in left}
        return {name: hint for name, hint in found.items() if hint is not None and not name.startswith(ATTRIBUTE)}

    # --- classes -------------------------------------------------------------------------------

    def spec(self, draft: Draft, drafts: Sequence[Draft]) -> ModelSpec:
        group = draft.group
        parts: dict[str, KeyPieces] = {}
        matching = Matching(group, self.grouping.splitter, self.hints(draft), self._words)
        for name in sorted(self._index_keys - draft.left_out):
            found = matching.parts(name)
            if found is not None:
                parts[name] = found
        fields, names = self.fields(draft, {*parts})
        for name, found in [*parts.items()]:
            if any(isinstance(each, OfField) and each.attribute not in names for each in found):
                del parts[name]
        fields, names = self.fields(draft, {*parts})
        here = {name for item in group.items for name in item}
        indexes: dict[str, str | tuple[str | None, str]] = {}
        for index in self.definition.indexes:
            given = [_text(draft, drafts, parts[key.name], names) if key.name in parts else None for key in index.keys]
            lacking = [key.name for key in index.keys if key.name not in {*parts, *names.keys(), *self._keys}]
            if not any(given) or lacking or index.name in draft.left_out or index.is_multi_attribute:
                continue
            first, second = given[0], given[1] if len(given) > 1 else None
            indexes[index.name] = (first, second) if second is not None else first or ""
        unused_parts = {key.name for index in self.definition.indexes if index.name in indexes for key in index.keys}
        attributes = {
            name: _placeholder(draft, drafts, number, spec)
            for number, column in enumerate(draft.columns)
            for name, spec in column.attributes.items()
        }
        attributes |= {
            name: _text(draft, drafts, each, names)
            for name, each in parts.items()
            if name not in unused_parts and name in here
        }
        own = [number for number in ids(group) if number not in draft.role.taken]
        key = tuple(FieldSpec(draft.columns[number].name, draft.columns[number].hint) for number in own)
        return ModelSpec(
            draft.name,
            draft.role.kind,
            key,
            tuple(fields),
            _shape_text(draft, drafts, group.partition),
            _shape_text(draft, drafts, group.sort) if self.definition.sort is not None else None,
            indexes,
            attributes,
            group.word,
            tuple(drafts[number].name for number, _ in draft.role.ends),
            count=len(group.items),
            notes=(
                *draft.notes,
                *self._notes(draft, fields),
                *(matching.doubts[name] for name in parts if name in matching.doubts),
            ),
        )

    def _notes(self, draft: Draft, fields: Sequence[FieldSpec]) -> list[str]:
        """What is unsure about a class."""
        notes = []
        for number in ids(draft.group):
            if number in draft.role.taken:
                continue
            column = draft.columns[number]
            if column.is_constant:
                text = draft.group.columns[number][0]
                notes.append(f"{column.name} is {text!r} in all keys that were read: it may be a constant")
        known = {each.attribute for each in fields}
        known |= {name for column in draft.columns for name in column.attributes}
        others = Counter(name for item in draft.group.items for name in item if not name.startswith(ATTRIBUTE))
        left = {*self._keys, *self._index_keys, self.grouping.type_attribute}
        unexplained = [name for name in others if name not in known | left]
        if unexplained:
            shown = ", ".join(sorted(unexplained)[:5]) + (", …" if len(unexplained) > 5 else "")
            notes.append(f"no field explains {shown}: such attributes are kept, but have no type that fits all items")
        if len(draft.group.items) == 1 and draft.group.columns[:1] != [[]]:
            notes.append("only one item was read")
        return notes


_MEANINGLESS = frozenset(("META", "METADATA", "INFO", "A", "ROOT", "SELF", "#META"))


def _words_in(shape: KeyShape) -> list[str]:
    return [
        word
        for each in shape
        if isinstance(each, str)
        for text in "".join(c if c.isalnum() or c in "_-. " else "\0" for c in each).split("\0")
        if (word := text.strip("_-. ")) and not word.isdigit()
    ]


def _label_before(group: Group, number: int) -> str | None:
    """The word before a column in a key."""
    for shape in (group.partition, group.sort):
        for place, piece in enumerate(shape):
            if piece == number and place and (words := _words_in((shape[place - 1],))):
                return words[-1]
    return None


def part_name(draft: Draft, drafts: Sequence[Draft], number: int) -> str:
    """The name of a column in the templates of its class: that of a field, or of a part of the id of an end."""
    sides = ("parent",) if draft.role.kind == "child" else ("source", "target")
    for side, (other, columns) in zip(sides, draft.role.ends, strict=False):
        for theirs, own in columns.items():
            if own == number:
                return f"{side}.{part_name(drafts[other], drafts, theirs)}"
    return draft.columns[number].name


def _transform_of(draft: Draft, drafts: Sequence[Draft], number: int) -> str:
    """The transform of a column: that of the node whose id it is."""
    for other, columns in draft.role.ends:
        for theirs, own in columns.items():
            if own == number:
                return _transform_of(drafts[other], drafts, theirs)
    return draft.columns[number].transform


def _placeholder(draft: Draft, drafts: Sequence[Draft], number: int, transform: str) -> str:
    return f"{{{part_name(draft, drafts, number)}{':' if transform else ''}{transform}}}"


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _shape_text(draft: Draft, drafts: Sequence[Draft], shape: KeyShape) -> str:
    return "".join(
        _escaped(each)
        if isinstance(each, str)
        else _placeholder(draft, drafts, each, _transform_of(draft, drafts, each))
        for each in shape
    )


def _text(draft: Draft, drafts: Sequence[Draft], parts: KeyPieces, names: Mapping[str, str]) -> str:
    """The template of an index key."""
    found = []
    for each in parts:
        if isinstance(each, OfColumn):
            transform = _transform_of(draft, drafts, each.column)
            found.append(_placeholder(draft, drafts, each.column, transform))
        elif isinstance(each, OfField):
            found.append(f"{{{names[each.attribute]}{':' if each.transform else ''}{each.transform}}}")
        else:
            found.append(_escaped(each))
    return "".join(found)
