"""Tables that adjoin itself has laid out, with the templates that it chooses: their keys and own items tell everything.

    STUDENT#S1   #META                  a node; in a materialized graph, the sort key is the node key
    STUDENT#S1   ENROLLMENT#COURSE#C1   an edge; the reverse index has COURSE#C1 and ENROLLMENT#STUDENT#S1
    STUDENT#S1   NOTE#7                 a child: in no reverse index
    #=…                                 unique values, numbers of shards, and which fields are aggregates

A table of which a single item is not of this form is not taken for one of these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from decimal import Decimal

from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError
from adjoin.inferring.grouping import type_attribute_of
from adjoin.inferring.hints import TEXT, Hint, hint_of, key_hint
from adjoin.inferring.naming import class_name, field_name, words_of
from adjoin.inferring.program import FieldSpec, Kind, ModelSpec, Program, quoted
from adjoin.layouts.indexed_fields import ELEMENTS
from adjoin.layouts.key_values import key_text, sortable_text, unsorted_text
from adjoin.layouts.keys import Quoting
from adjoin.layouts.template_texts import NODE_SORT_KEY
from adjoin.reserved import ATTRIBUTE, MARK, OWN, RECORDS, is_own_partition
from adjoin.tables import IndexDefinition, TableDefinition
from adjoin.values import AttributeValue, Item, decode

_QUOTING = Quoting(frozenset("#"), escape=True)
_GENERATION = "adjoin:life"


@dataclass
class _Found:
    """The items of one class."""

    kind: Kind
    label: str
    items: list[Item] = field(default_factory=list)
    parts: list[list[str]] = field(default_factory=list)
    """For each item the parts of the id, or of what follows the ends in the keys, unquoted."""
    ends: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The labels at each end."""
    is_symmetric: bool = False


def program_of(definition: TableDefinition, items: Sequence[Item]) -> Program | None:
    """The program of a table with adjoin's own templates; None if it is not one."""
    if definition.sort is None or {key.type for key in definition.keys} != {"S"}:
        return None
    for layout in ("list", "graph"):
        found = _Reading(definition, items, is_graph=layout == "graph").program()
        if found is not None:
            return found
    return None


class _Reading:
    def __init__(self, definition: TableDefinition, items: Sequence[Item], *, is_graph: bool) -> None:
        self._definition, self._is_graph = definition, is_graph
        self._pk, self._sk = definition.partition.name, (definition.sort or definition.partition).name
        self._own = [item for item in items if is_own_partition(item[self._pk]["S"])]
        self._mine = [item for item in items if not is_own_partition(item[self._pk]["S"])]
        self._reverse = self._index("GSI2" if is_graph else "GSI1")
        self._fields = self._index("GSI1" if is_graph else "GSI3")
        self._ordered = self._index("GSI3" if is_graph else "GSI2")
        self._type = type_attribute_of(definition, self._mine)
        self._found: dict[str, _Found] = {}

    def _index(self, name: str) -> IndexDefinition | None:
        index = self._definition.index(name)
        return None if index is None or index.sort is None or index.is_multi_attribute else index

    def program(self) -> Program | None:
        if self._reverse is None or not self._mine:
            return None
        nodes = [item for item in self._mine if self._is_node(item)]
        if not nodes or not all(map(self._read_node, nodes)):
            return None
        labels = {*self._found}
        others = [item for item in self._mine if not self._is_node(item)]
        keys = {(item[self._pk]["S"], item[self._sk]["S"]) for item in others}
        if not all(self._read_other(item, labels, keys) for item in others):
            return None
        # The attribute looked like a type attribute, but it does not have the labels: it is a field.
        if self._type and any(
            item[self._type]["S"] != found.label for found in self._found.values() for item in found.items
        ):
            self._type = None
        names: dict[str, str] = {}
        for label in self._found:
            names[label] = class_name(label, names.values())
        indexes = {index.name for index in (self._reverse, self._fields, self._ordered) if index}
        # adjoin's own templates know no further index, so a person has declared this table.
        if any(index.name not in indexes for index in self._definition.indexes):
            return None
        classes = [self._spec(found, names) for found in self._found.values()]
        if any(each is None for each in classes):
            return None
        made = self._with_aggregates([each for each in classes if each is not None], names)
        if made is None:
            return None
        made.sort(key=lambda each: ("node", "child", "edge").index(each.kind))
        return Program(
            self._definition,
            tuple(made),
            self._type,
            layout="graph" if self._is_graph else "list",
            shards=self._shards(),
        )

    # --- items ---------------------------------------------------------------------------------

    def _is_node(self, item: Item) -> bool:
        sort: str = item[self._sk]["S"]
        return sort == (str(item[self._pk]["S"]) if self._is_graph else NODE_SORT_KEY)

    def _read_node(self, item: Item) -> bool:
        label, *parts = item[self._pk]["S"].split("#")
        return self._add("node", label, item, parts)

    def _add(self, kind: Kind, label: str, item: Item, parts: list[str]) -> bool:
        if not label or not label[0].isalpha() or "" in parts or any(_unquoted(part) is None for part in parts):
            return False
        found = self._found.setdefault(label, _Found(kind, label))
        found.items.append(item)
        found.parts.append([_unquoted(part) or "" for part in parts])
        return found.kind == kind and len(found.parts[0]) == len(parts) and (kind != "node" or bool(parts))

    def _read_other(self, item: Item, labels: set[str], keys: set[tuple[str, str]]) -> bool:
        assert self._reverse is not None
        assert self._reverse.sort is not None
        source, sort = item[self._pk]["S"], item[self._sk]["S"]
        label, _, rest = sort.partition("#")
        target = item.get(self._reverse.partition.name, {}).get("S")
        back = item.get(self._reverse.sort.name, {}).get("S")
        if source.partition("#")[0] not in labels or not rest:
            return False
        if target is not None and back is not None:
            if not (rest == target or rest.startswith(f"{target}#")) or not back.startswith(f"{label}#"):
                return False
            self._see(target)
            own = rest[len(target) + 1 :]
            return self._add("edge", label, item, own.split("#") if own else []) and self._end(label, source, target)
        if target is not None or back is not None:
            return False
        far = rest.partition("#")[0]
        if far in labels and far == source.partition("#")[0] and (rest, f"{label}#{source}") in keys:
            is_added = self._add("edge", label, item, []) and self._end(label, source, rest)
            self._found[label].is_symmetric = True
            return is_added
        return self._add("child", label, item, rest.split("#")) and self._end(label, source)

    def _end(self, label: str, source: str, target: str | None = None) -> bool:
        found = self._found[label]
        found.ends["source"].add(source.partition("#")[0])
        if target is not None:
            found.ends["target"].add(target.partition("#")[0])
        return len(found.ends["source"]) == 1 or found.kind == "edge"

    def _see(self, target: str) -> None:
        """Notes a node that only edges name."""
        label, *parts = target.split("#")
        found = self._found.setdefault(label, _Found("node", label))
        if not found.items:
            found.parts.append([_unquoted(part) or "" for part in parts])

    # --- classes -------------------------------------------------------------------------------

    def _spec(self, found: _Found, names: dict[str, str]) -> ModelSpec | None:
        fields = self._class_fields(found)
        notes: list[str] = []
        key: list[FieldSpec] = []
        for number in range(len(found.parts[0])):
            texts = [parts[number] for parts in found.parts]
            if found.kind == "edge":
                stored = self._stored_as(found, texts, fields)
                if stored is None:
                    return None
                fields.remove(stored)
                key.append(stored)
            else:
                taken = {each.name for each in (*key, *fields)}
                name = field_name("key" if found.kind == "child" else "part", taken)
                is_only = len(found.parts[0]) == 1 and found.kind == "node"
                key.append(FieldSpec("id" if is_only else name, _key_type(texts)))
        if found.kind != "edge" and [each.name for each in key] != ["id"]:
            notes.append(f"the names of {', '.join(each.name for each in key)} are not stored")
        if not found.items:
            notes.append("no item of it was read, only edges lead to it")
        options = [f"label={quoted(found.label)}"] if _label(names[found.label]) != found.label else []
        if found.is_symmetric:
            options.append("symmetric=True")
        if found.kind == "edge":
            sides = {"end": "one_target", "source": "one_target", "target": "one_source"}
            options += [f"{sides[side]}=True" for side in self._unique(found.label) if side in sides]
        if order := self._order(found, [*key, *fields]):
            options.append(f"order={quoted(order)}")
        ends = [" | ".join(sorted(names[label] for label in found.ends[side])) for side in ("source", "target")]
        return ModelSpec(
            names[found.label],
            found.kind,
            tuple(key),
            tuple(fields),
            ends=tuple(ends[:1] if found.kind == "child" else ends if found.kind == "edge" else ()),
            options=tuple(options),
            count=len(found.items),
            notes=tuple(notes),
        )

    def _class_fields(self, found: _Found) -> list[FieldSpec]:
        left = {key.name for key in self._definition.key_attributes} | {self._type}
        names = dict.fromkeys(name for item in found.items for name in item)
        scopes, unique = self._indexed(found.label), self._unique(found.label)
        indexed = [name for name in scopes if not name.endswith(ELEMENTS)]
        elements = [name.removesuffix(ELEMENTS) for name in scopes if name.endswith(ELEMENTS)]
        fields: list[FieldSpec] = []
        for name in names:
            if name in left or name.startswith(ATTRIBUTE):
                continue
            values = [item[name] for item in found.items if name in item]
            hint = hint_of(name, values)
            is_optional, may_be_null = len(values) < len(found.items), any("NULL" in value for value in values)
            if hint is None or hint.tag == "NULL" or (is_optional and may_be_null):
                continue
            own = next((each for each in (*indexed, *elements, *unique) if each in (name, field_name(name))), None)
            marked = {"Indexed()": indexed, "Indexed(elements=True)": elements, "Unique()": unique}
            marks = [mark for mark, names_of in marked.items() if own in names_of and own]
            if "Indexed()" in marks and hint.text.startswith("list["):
                hint = Hint(f"tuple[{hint.text[5:-1]}, ...]", tag=hint.tag)
            taken = {each.name for each in fields} | {"id"}
            fields.append(FieldSpec(own or field_name(name, taken), hint, name, is_optional, may_be_null, tuple(marks)))
        fields.sort(key=lambda each: (each.is_optional, indexed.index(each.name) if each.name in indexed else 99))
        return fields

    def _indexed(self, label: str) -> list[str]:
        """The indexed fields of a class, that of the entities' own entries first; "tags[]" for elements of "tags"."""
        if self._fields is None:
            return []
        name = self._fields.partition.name
        scopes = [item[name]["S"].split("#") for item in (*self._mine, *self._own) if "S" in item.get(name, {})]
        return list(dict.fromkeys(scope[-2] for scope in scopes if len(scope) > 2 and scope[-3] == label))

    def _unique(self, label: str) -> list[str]:
        claims = [item[self._pk]["S"] for item in self._own if item[self._sk]["S"] == MARK]
        start = f"{OWN}{label}#"
        return list(dict.fromkeys(claim[len(start) :].partition("#")[0] for claim in claims if claim.startswith(start)))

    def _stored_as(self, found: _Found, texts: list[str], fields: list[FieldSpec]) -> FieldSpec | None:
        """The field that is part of the keys of edges."""
        for each in fields:
            attribute = each.attribute or each.name
            if not each.is_optional and texts == [_in_key(item[attribute], each.hint) for item in found.items]:
                return each
        return None

    def _order(self, found: _Found, fields: list[FieldSpec]) -> str | None:
        """The field by which edges are sorted, if they have keys of the index for order."""
        if self._ordered is None or self._ordered.sort is None or found.kind != "edge":
            return None
        texts = [item.get(self._ordered.sort.name, {}).get("S", "") for item in found.items]
        tokens = [_unquoted(text.split("#")[1]) if text.count("#") else None for text in texts]
        for each in fields:
            attribute = each.attribute or each.name
            if all(attribute in item for item in found.items) and tokens == [
                _in_key(item[attribute], each.hint) for item in found.items
            ]:
                return each.name
        return None

    def _shards(self) -> int | None:
        """The number of shards in the record of the index of fields."""
        for item in self._own:
            is_record = item[self._pk]["S"] == OWN + RECORDS and self._fields is not None
            if is_record and self._fields and item[self._sk]["S"] == f"{MARK}SHARDS#{self._fields.partition.name}":
                try:
                    return int(decode(item["adjoin:shards"])["epochs"][-1][0])
                except (KeyError, TypeError, ValueError, IndexError, AdjoinError):
                    return None
        return None

    # --- aggregates ----------------------------------------------------------------------------

    def _with_aggregates(self, classes: list[ModelSpec], names: dict[str, str]) -> list[ModelSpec] | None:
        """The classes with the aggregates that the table records; None if one cannot be told from what is stored."""
        recorded = [
            tuple(rule.split(".", 1))
            for item in self._own
            if item[self._sk]["S"] == "=rules" and "M" in item.get("rules", {})
            for rule in item["rules"]["M"]
        ]
        counted = {label for label, found in self._found.items() if any(_GENERATION in item for item in found.items)}
        if not counted <= {label for label, _ in recorded}:
            return None
        made = {each.name: each for each in classes}
        for label, attribute in recorded:
            if label not in names:
                continue
            spec = made[names[label]]
            own = next((each for each in spec.fields if attribute in (each.attribute, each.name)), None)
            rule = None if own is None else self._rule(label, own, made, names)
            if own is None or rule is None:
                return None
            text, default, is_optional = rule
            changed = replace(own, marks=(text,), default=default, is_optional=is_optional)
            fields = [changed if each is own else each for each in spec.fields]
            fields.sort(key=lambda each: each.default is not None or each.is_optional)
            note = f"{own.name} is an aggregate, and {text} agrees with all items that were read"
            made[spec.name] = replace(spec, fields=tuple(fields), notes=(*spec.notes, note))
        return [*made.values()]

    def _rule(
        self, label: str, own: FieldSpec, made: dict[str, ModelSpec], names: dict[str, str]
    ) -> tuple[str, str | None, bool] | None:
        """An aggregate that agrees with all nodes: its text, its default, and whether it may be None."""
        attribute = own.attribute or own.name
        nodes = {item[self._pk]["S"]: _number(item.get(attribute)) for item in self._found[label].items}
        folds: dict[str, Callable[[list[Decimal]], Decimal | None]] = {
            "Sum": lambda values: sum(values, Decimal(0)),
            "Max": lambda values: max(values, default=None),
            "Min": lambda values: min(values, default=None),
        }
        for found in self._found.values():
            if found.kind == "node" or found.is_symmetric:
                continue
            for side in ("source", "target"):
                if found.ends[side] != {label}:
                    continue
                at: dict[str, list[Item]] = {key: [] for key in nodes}
                for item in found.items:
                    key = item[self._pk if side == "source" else (self._reverse or self._definition).partition.name][
                        "S"
                    ]
                    at.setdefault(key, []).append(item)
                name = names[found.label]
                if all(len(at[key]) == (value or 0) for key, value in nodes.items()):
                    return f"Count({quoted(name)})", "0", False
                for each in made[name].fields:
                    if each.hint.tag != "N":
                        continue
                    values = {
                        key: [
                            number for item in there if (number := _number(item.get(each.attribute or ""))) is not None
                        ]
                        for key, there in at.items()
                    }
                    for fold, compute in folds.items():
                        if all(
                            compute(values[key]) == (value or 0 if fold == "Sum" else value)
                            for key, value in nodes.items()
                        ):
                            text = f"{fold}({quoted(name)}, field={quoted(each.name)})"
                            zero = "Decimal(0)" if own.hint.text == "Decimal" else "0"
                            return text, zero if fold == "Sum" else None, fold != "Sum"
        return None


def _number(value: AttributeValue | None) -> Decimal | None:
    return Decimal(value["N"]) if value and "N" in value else None


def _unquoted(text: str) -> str | None:
    """What a part of a key stands for; None if adjoin does not write it so."""
    return _QUOTING.unquote(text) if _QUOTING.is_quoted(text) else None


def _in_key(value: AttributeValue, hint: Hint) -> str | None:
    """The text of a value in a key that sorts."""
    try:
        if "N" in value:
            return sortable_text(Decimal(value["N"]))
        return key_text(value["S"]) if hint.text in ("str", "dt.date", "UUID") else None
    except (AdjoinError, KeyError):
        return None


def _key_type(texts: Sequence[str]) -> Hint:
    """The type of a part of an id, which no attribute repeats."""
    found = key_hint(texts)
    if found.text in ("dt.date", "UUID"):
        return Hint(found.text)
    try:
        numbers = [Decimal(unsorted_text(text)) for text in texts if text[:1] in "np" and text[1:2].isdigit()]
        if len(numbers) == len(texts) and [sortable_text(number) for number in numbers] == [*texts]:
            return Hint("int" if all(number == int(number) for number in numbers) else "Decimal", tag="N")
    except (AdjoinError, ValueError, ArithmeticError):
        pass
    return TEXT


def _label(name: str) -> str:
    """The label that a class of this name has, if none is given."""
    return "_".join(words_of(name)).upper()
