"""The items of a source as one table per class, read in one pass.

A node is a row with its `id`. An edge is a row with its `source`, and its `target` if that is wanted. A child that is
counted is both: its `source` is its parent, and its `target` the child. Ids are written as in keys: equal ids are equal
texts, and `Tables.id_of` turns them into values again. Other wanted values are columns of text. Only items of the
graph's own classes are included: adjoin's own items, items of other tenants and any others match no template (see
`keys`).

A want says where the value of a field is in an item, and in which of DynamoDB's types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from functools import cached_property
from typing import Any, TypeAlias, TypeGuard

import ibis
import ibis.expr.types as ir
from orjson import dumps
from pydantic_core import PydanticUndefined

from adjoin.batch.engines import Engine, Source, Want
from adjoin.batch.exports import Export
from adjoin.batch.keys import (
    field_text,
    id_of_texts,
    id_text,
    is_echo,
    matches,
    part_text,
    quoted,
    source_text,
    unquoted,
)
from adjoin.dataclass import dataclass
from adjoin.entity_types import CountedType, EdgeType, EntityType, NodeType, tag_of
from adjoin.errors import InvalidExport, InvalidModel
from adjoin.expressions import And, Compare, Condition, Exists, Not, Or, Path, Value
from adjoin.field_types import may_be_none
from adjoin.fields import Predicate
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.key_values import value_of
from adjoin.layouts.keys import SEPARATOR, Template
from adjoin.plans.steps.conditions import NULL, plain_condition

# --- wants -------------------------------------------------------------------------------------


KEY_PART = "\0key"
"""The first step of a want that is a part of the sort key, and not an attribute: (KEY_PART, field, tag)."""

TARGET: Want = ("\0target",)
"""The want for the target of an edge. Many jobs do not need it."""

PARENT: Want = ("\0parent",)
"""The want for the parent of a child. With it, a child has a source and a target, as an edge has."""


def ends_want(kind: CountedType) -> Want:
    """The want for both ends of what is counted."""
    return PARENT if isinstance(kind, NodeType) else TARGET


def field_want(layout: BoundLayout, kind: EntityType, name: str, tag: str | None = None) -> Want:
    """The want of a field, for values of one type if `tag` names one."""
    tag = tag or tag_of(kind, name)
    if name not in layout.key_templates(kind).stored:
        return (KEY_PART, name, tag or "S")
    return attribute_want(kind.attributes[name], tag)


def attribute_want(attribute: str, tag: str | None) -> Want:
    return (attribute,) if tag is None else (attribute, tag)


@dataclass(frozen=True, slots=True)
class Default:
    """The default of a field whose attribute is absent, as text."""

    text: str
    whole: Want | None
    """The want of the whole attribute, if only that shows whether it is absent."""


def default_of(layout: BoundLayout, kind: EntityType, want: Want) -> Default | None:
    """The default for a want whose attribute is absent; None if there is none."""
    name = next((name for name, stored in kind.attributes.items() if stored == want[0]), None)
    if name is None or name not in layout.key_templates(kind).stored:
        return None
    if any(rule.field == name for rule in layout.rules.declared if rule.node is kind):
        # An aggregate that was not counted is not stored; its default is only how a program sees it.
        return None
    value = kind.fields[name].get_default(call_default_factory=True)
    encoded = None if value is PydanticUndefined else layout.encode_field(kind, name, value)
    if encoded is None or "NULL" in encoded:
        return None
    found: Any = encoded
    for step in want[1:]:
        found = found.get(step) if isinstance(found, dict) else _element(found, step)
        if found is None:
            return None
    text = found if isinstance(found, str) else dumps(found).decode()
    is_plain = len(want) == 2 and want[1] == tag_of(kind, name) and not may_be_none(kind.fields[name])
    return Default(text, None if is_plain or len(want) == 1 else (want[0],))


def _element(found: Any, step: str) -> Any:
    is_there = isinstance(found, list) and step.isdecimal() and int(step) < len(found)
    return found[int(step)] if is_there else None


def stored_condition(layout: BoundLayout, kind: EntityType, predicate: Predicate) -> Condition:
    """A predicate as a condition on stored items. Fields that are only in keys count as attributes."""

    def named(kind: EntityType, name: str) -> str:
        return kind.attribute(name) if name in layout.key_templates(kind).stored else f"{KEY_PART}{name}"

    return _without_nulls(kind, plain_condition(layout, kind, predicate, named))


def _without_nulls(kind: EntityType, whole: Condition) -> Condition:
    """The condition with null counted as absent, in fields whose default is None."""
    none = {
        stored
        for name, stored in kind.attributes.items()
        if kind.fields[name].get_default(call_default_factory=False) is None
    }

    def strict(each: Condition) -> Condition:
        match each:
            case And(parts):
                return And(tuple(map(strict, parts)))
            case Or(parts):
                return Or(tuple(map(strict, parts)))
            case Not(inner):
                return Not(strict(inner))
            case Exists(Path((first,))) if first in none:
                return And((each, Compare("<>", each.path, Value(NULL))))
        return each

    return strict(whole)


# --- tables ------------------------------------------------------------------------------------


Wanted: TypeAlias = Mapping[type[Any], Set[Want]]
"""The wants of each class. Other classes are not read."""

_OTHER = -1
"""The class number of items that belong to no class."""


class KeyColumns:
    """The columns of the table's own keys, as text; the sort key of a table that has none is ""."""

    def __init__(self, layout: BoundLayout) -> None:
        definition = layout.definition
        self.wants: list[Want] = [(key.name, key.type) for key in definition.keys]
        self.names = tuple(key.name for key in definition.keys)

    def __str__(self) -> str:
        return " and ".join(repr(name) for name, _ in self.wants)

    def of(self, named: Mapping[Want, Any]) -> tuple[Any, Any]:
        partition, *sort = (named[want] for want in self.wants)
        return partition, sort[0] if sort else ibis.literal("")


class Tables:
    """One table per class, read from a source."""

    def __init__(
        self, engine: Engine, source: Source, layout: BoundLayout, wanted: Wanted, *, keys: Collection[type[Any]] = ()
    ) -> None:
        """`keys` are the classes whose tables also have the keys of their items, in `pk` and `sk`."""
        self.engine, self.layout = engine, layout
        self._keys = KeyColumns(layout)
        self._kinds = [
            each
            for kind in layout.schema.types
            if kind.model in wanted and kind.whole is kind
            for each in (kind.variants if isinstance(kind, EdgeType) else (kind,))
        ]
        self._wanted = wanted
        self._keyed = {*keys}
        self._defaults: dict[tuple[type[Any], Want], Default] = {
            (kind.model, want): default
            for kind in self._kinds
            for want in wanted[kind.model]
            if _is_attribute(want) and (default := default_of(layout, kind, want)) is not None
        }
        attributes = {want for kind in self._kinds for want in wanted[kind.model] if _is_attribute(want)}
        attributes |= {default.whole for default in self._defaults.values() if default.whole is not None}
        self._columns = {want: f"c{place}" for place, want in enumerate(sorted(attributes))}
        self._tables: dict[tuple[int, bool], ir.Table] = {}
        self._entities = engine.stage(self._read(source)) if self._kinds else None
        if self._entities is not None and isinstance(source, Export):
            self._require_whole(source)

    # --- reading -------------------------------------------------------------------------------

    def _read(self, source: Source) -> ir.Table:
        wants: dict[Want, int] = {}

        def place(want: Want) -> int:
            return wants.setdefault(want, len(wants))

        for want in self._keys.wants:
            place(want)
        for kind in self._kinds:
            for told in (*self._told_elsewhere(kind), *(each for each, _ in self._key_parts(kind).values())):
                place(told)
            if (label := self.layout.key_templates(kind).type_attribute) is not None:
                place((label, "S"))
        for want in self._columns:
            place(want)
        rows = self.engine.rows(source, list(wants))
        named = {want: rows[f"w{at}"] for want, at in wants.items()}
        pk, sk = self._keys.of(named)
        cases = [(self._is_of(kind, named), ibis.literal(at, "int8")) for at, kind in enumerate(self._kinds)]
        cases.append((pk.notnull() & sk.notnull(), ibis.literal(_OTHER, "int8")))
        columns: dict[str, Any] = {"kind": ibis.cases(*cases)}
        columns |= {f"w{at}": rows[f"w{at}"] for at in wants.values()}
        known = rows.select(**columns)
        # No filter here: engines would push it down to the items, and parse their JSON twice.
        named = {want: known[f"w{at}"] for want, at in wants.items()}
        pk, sk = self._keys.of(named)
        owners = {at: self._owner(kind, named) for at, kind in enumerate(self._kinds)}
        kept = {"kind": known.kind, "a": self._each(known.kind, owners)}
        ends = {at: self._end(kind, "target", named) for at, kind in enumerate(self._kinds) if self._has_target(kind)}
        ends |= {
            at: source_text(self.layout, kind, pk, sk) for at, kind in enumerate(self._kinds) if self._has_parent(kind)
        }
        if ends:
            kept["b"] = self._each(known.kind, ends)
        if self._keyed:
            kept |= {"pk": pk, "sk": sk}
        # Parts of keys are large expressions, so they are computed once, and not in each expression that reads them.
        parts: dict[str, dict[int, Any]] = {}
        for at, kind in enumerate(self._kinds):
            for want, (key, template) in self._key_parts(kind).items():
                parts.setdefault(self.column(want), {})[at] = field_text(kind, want[1], template, named[key])
        kept |= {name: self._each(known.kind, some) for name, some in parts.items()}
        kept |= {name: named[want] for want, name in self._columns.items()}
        return known.select(**kept)

    def _require_whole(self, export: Export) -> None:
        """Refuses an export with lines without an item, or with another number of items than its manifests say.

        Engines ignore both without an error.
        """
        empty = self._by_number.get(None, 0)
        if empty:
            raise InvalidExport(
                f"{export.place} cannot be read, although it matches its checksums: {empty:,} of its lines have no "
                f"item with {self._keys}, the key of {self.layout.table!r}; export again"
            )
        found = sum(self._by_number.values())
        if found != export.items:
            raise InvalidExport(
                f"{export.place} has {found:,} items, but its manifests say {export.items:,}; export again"
            )

    def _each(self, number: Any, by_number: Mapping[int, Any]) -> Any:
        """One column out of several: for each row, the value for its class."""
        cases = [(number == at, value) for at, value in by_number.items()]
        return cases[0][1] if len(cases) == len(self._kinds) == 1 else ibis.cases(*cases)

    def _is_of(self, kind: EntityType, named: Mapping[Want, Any]) -> Any:
        templates = self.layout.key_templates(kind)
        pk, sk = self._keys.of(named)
        holds = matches(templates.partition, pk) & matches(templates.sort, sk)
        for name in sorted(templates.sort.told & templates.partition.told):
            holds &= part_text(templates.sort, name, sk) == part_text(templates.partition, name, pk)
        for one, key, other, other_key in (
            (templates.partition, pk, templates.sort, sk),
            (templates.sort, sk, templates.partition, pk),
        ):
            for part in one.parts:
                if part.transform.decode is None and part.name in other.told:
                    holds &= is_echo(one, part, key, part_text(other, part.name, other_key))
        for node in templates.meets:
            holds &= ~self._is_of(node, named)
        if templates.type_attribute is not None:
            holds &= named[templates.type_attribute, "S"].isin(templates.type_words).fill_null(True)
        if isinstance(kind, EdgeType) and kind.union is not None:
            # If the table's keys do not have an end, only its attribute tells of which class it is.
            for name, template in (self._elsewhere(kind, "source") | self._elsewhere(kind, "target")).items():
                holds &= matches(template, named[name, template.type])
        return holds.fill_null(False)

    def _owner(self, kind: EntityType, named: Mapping[Want, Any]) -> Any:
        """The id of a node, or of the source of an edge."""
        if isinstance(kind, EdgeType):
            return self._end(kind, "source", named)
        assert isinstance(kind, NodeType)
        templates = self.layout.key_templates(kind)
        pk, sk = self._keys.of(named)
        return id_text(kind, "", [(templates.partition, pk), (templates.sort, sk)])

    def _end(self, kind: EdgeType, side: str, named: Mapping[Want, Any]) -> Any:
        """The text of the id at one end of an edge."""
        texts = []
        quoting = self._node_quoting(_end_of(kind, side))
        for attribute, template, name in self._end_places(kind, side):
            text = part_text(template, name, named[attribute, template.type])
            # Key attributes without a declared template escape their parts, even in a layout that does not escape, and
            # attributes that are no keys do not, even in one that does.
            if template.quoting.escape and not quoting.escape:
                text = unquoted(template.quoting, text)
            elif quoting.escape and not template.quoting.escape:
                text = quoted(quoting, text)
            texts.append(text)
        return id_of_texts(texts)

    def _node_quoting(self, kind: NodeType) -> Any:
        return self.layout.key_templates(kind).partition.quoting

    def _has_target(self, kind: EntityType) -> TypeGuard[EdgeType]:
        return isinstance(kind, EdgeType) and TARGET in self._wanted[kind.model]

    def _has_parent(self, kind: EntityType) -> TypeGuard[NodeType]:
        return isinstance(kind, NodeType) and PARENT in self._wanted[kind.model]

    def _end_places(self, kind: EdgeType, side: str) -> list[tuple[str, Template, str]]:
        """For each part of the id at an edge's end: the attribute that contains it, its template, and its name."""
        return [self._end_place(kind, side, f"{side}.{name}") for name in _end_of(kind, side).parts]

    def _end_place(self, kind: EdgeType, side: str, part: str) -> tuple[str, Template, str]:
        templates = self.layout.key_templates(kind)
        keys = zip(self._keys.names, (templates.partition, templates.sort), strict=False)
        for attribute, template in (*keys, *templates.others.items()):
            for name in (part, templates.target_field if side == "target" else None):
                if name is not None and name in template.told:
                    return attribute, template, name
        raise InvalidModel(f"no key of {kind.name} contains its {side}")

    def _told_elsewhere(self, kind: EntityType) -> list[Want]:
        """The attributes besides the table's keys that tell the ends of an edge, or of which variant it is."""
        if not isinstance(kind, EdgeType):
            return []
        sides = ("source", "target") if self._has_target(kind) or kind.union is not None else ("source",)
        return [(name, template.type) for side in sides for name, template in self._elsewhere(kind, side).items()]

    def _elsewhere(self, kind: EdgeType, side: str) -> dict[str, Template]:
        places = self._end_places(kind, side)
        return {name: template for name, template, _ in places if name not in self._keys.names}

    # --- what was read -------------------------------------------------------------------------

    def table(self, kind: EntityType, *, as_stored: bool = False) -> ir.Table:
        """The rows of a class: `id`, or `source` and perhaps `target`, or all three; then keys and wanted columns.

        A field whose attribute is absent has its default, unless `as_stored`.
        """
        number = next(at for at, each in enumerate(self._kinds) if each is kind)
        if (number, as_stored) not in self._tables:
            # Several rules read a class, and Ibis takes time for every column of a table.
            self._tables[number, as_stored] = self._made(kind, number, as_stored)
        return self._tables[number, as_stored]

    def _made(self, kind: EntityType, number: int, as_stored: bool) -> ir.Table:
        assert self._entities is not None
        rows = self._entities.filter(self._entities.kind == number)
        columns = {"source" if isinstance(kind, EdgeType) else "id": rows.a}
        if self._has_target(kind):
            columns["target"] = rows.b
        if self._has_parent(kind):
            columns |= {"source": rows.b, "target": rows.a}
        if kind.model in self._keyed:
            columns |= {"pk": rows.pk, "sk": rows.sk}
        for want in self._wanted[kind.model] - {TARGET, PARENT}:
            columns[self.column(want)] = (
                rows[self.column(want)] if want[0] == KEY_PART else self._attribute(kind, want, rows, as_stored)
            )
        return rows.select(**columns)

    def _attribute(self, kind: EntityType, want: Want, rows: ir.Table, as_stored: bool) -> Any:
        column, default = rows[self.column(want)], self._defaults.get((kind.model, want))
        if default is None or as_stored:
            return column
        if default.whole is None:
            return column.fill_null(default.text)
        return ibis.ifelse(rows[self.column(default.whole)].isnull(), default.text, column)

    def _key_parts(self, kind: EntityType) -> dict[Want, tuple[Want, Template]]:
        """The wants that are parts of keys, each with the key that contains it: of the table, or of an index."""
        templates = self.layout.key_templates(kind)
        own = zip(self._keys.wants[::-1], (templates.sort, templates.partition)[-len(self._keys.wants) :], strict=True)
        keys = [*own, *(((name, each.type), each) for name, each in templates.others.items())]
        wants = sorted(want for want in self._wanted[kind.model] if want[0] == KEY_PART)
        return {want: next(found for found in keys if want[1] in found[1].told) for want in wants}

    def column(self, want: Want) -> str:
        """The name of the column that holds a want."""
        return f"p_{want[1]}" if want[0] == KEY_PART else self._columns[want]

    def has(self, kind: EntityType) -> bool:
        return any(each is kind for each in self._kinds)

    def id_of(self, kind: NodeType, text: str) -> Any:
        """The id that a text in a table means."""
        texts = [text] if kind.is_single else text.split(SEPARATOR) if text else []
        told = zip(kind.part_types.items(), texts, strict=True)
        return kind.id(
            kind.id_told({name: value_of(plain, self._read_back(kind, name, each)) for (name, plain), each in told})
        )

    def _read_back(self, kind: NodeType, name: str, text: str) -> str:
        """The plain text of a part of an id, as `value_of` reads it."""
        templates = self.layout.key_templates(kind)
        template = templates.partition if name in templates.partition.told else templates.sort
        decode = next(part.transform.decode for part in template.parts if part.name == name)
        # Transforms of texts are already undone.
        return template.quoting.unquote(text) if template.type == "S" or decode is None else decode(text)

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of rows by label."""
        if self._entities is None:
            return {}
        counts: dict[str, int] = {}
        for at, kind in enumerate(self._kinds):
            counts[kind.label] = counts.get(kind.label, 0) + self._by_number.get(at, 0)
        return counts

    @cached_property
    def _by_number(self) -> dict[int | None, int]:
        """The number of rows by class number. Lines without an item have None."""
        assert self._entities is not None
        counted = self._entities.group_by("kind").agg(rows=self._entities.count())
        return {row["kind"]: int(row["rows"]) for row in self.engine.fetch(counted)}


def _end_of(kind: EdgeType, side: str) -> NodeType:
    return kind.source if side == "source" else kind.target


def merged(*wanted: Iterable[tuple[type[Any], Iterable[Want]]]) -> dict[type[Any], set[Want]]:
    """Merges several lists of wants by class."""
    found: dict[type[Any], set[Want]] = {}
    for each in wanted:
        for model, wants in each:
            found.setdefault(model, set()).update(wants)
    return found


def _is_attribute(want: Want) -> bool:
    return want not in (TARGET, PARENT) and want[0] != KEY_PART
