"""The items of a source as one table a class, read in one pass.

A node is a row with its `id`; an edge one with its `source`, and its `target` where that is wanted. Ids are
spelled as in keys: equal ids are equal texts, and `Tables.id_of` has them back. What else is wanted of a class
are columns of text.
Only items of the graph's own classes come in: adjoin's own records, other tenants' items and whatever else
lies in the table match no template.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from functools import cached_property
from typing import Any, TypeAlias, TypeGuard

import ibis
import ibis.expr.types as ir

from adjoin.batch.columns import KEY_PART, TARGET, Default, default_of
from adjoin.batch.engines import Engine, Source, Want
from adjoin.batch.exports import Export
from adjoin.batch.keys import matches, part_text, unquoted
from adjoin.errors import InvalidExport, InvalidModel
from adjoin.layouts.interface import BoundLayout
from adjoin.layouts.keys import Template, value_of
from adjoin.schema import EdgeType, EntityType, NodeType

Wanted: TypeAlias = Mapping[type[Any], Set[Want]]
"""What is read of each class; classes that are not in it are not read."""

_OTHER = -1
"""The number of items that are of no class."""


class Tables:
    """The tables of some classes, read from a source."""

    def __init__(
        self, engine: Engine, source: Source, layout: BoundLayout, wanted: Wanted, *, keys: Collection[type[Any]] = ()
    ) -> None:
        """`keys` are the classes whose tables also have the keys of their items, as `pk` and `sk`."""
        self.engine, self.layout = engine, layout
        definition = layout.definition
        assert definition.sort is not None
        self._pk, self._sk = definition.partition.name, definition.sort.name
        self._kinds = [kind for kind in layout.schema.types if kind.model in wanted]
        self._wanted = wanted
        self._keyed = {
            *keys,
            *(kind.model for kind in self._kinds if any(w[0] == KEY_PART for w in wanted[kind.model])),
        }
        self._defaults: dict[tuple[type[Any], Want], Default] = {
            (kind.model, want): default
            for kind in self._kinds
            for want in wanted[kind.model]
            if _is_attribute(want) and (default := default_of(layout, kind, want)) is not None
        }
        attributes = {want for kind in self._kinds for want in wanted[kind.model] if _is_attribute(want)}
        attributes |= {default.whole for default in self._defaults.values() if default.whole is not None}
        self._columns = {want: f"c{place}" for place, want in enumerate(sorted(attributes))}
        self._entities = engine.stage(self._read(source)) if self._kinds else None
        if self._entities is not None and isinstance(source, Export):
            self._require_whole(source)

    # --- reading -------------------------------------------------------------------------------

    def _read(self, source: Source) -> ir.Table:
        wants: dict[Want, int] = {}

        def place(want: Want) -> int:
            return wants.setdefault(want, len(wants))

        place((self._pk, "S")), place((self._sk, "S"))
        for kind in self._kinds:
            for template in self._told_elsewhere(kind):
                place((template, "S"))
            if (label := self.layout.key_templates(kind).type_attribute) is not None:
                place((label, "S"))
        for want in self._columns:
            place(want)
        rows = self.engine.rows(source, list(wants))
        named = {want: rows[f"w{at}"] for want, at in wants.items()}
        pk, sk = named[self._pk, "S"], named[self._sk, "S"]
        cases = [(self._is_of(kind, named), ibis.literal(at, "int8")) for at, kind in enumerate(self._kinds)]
        cases.append((pk.notnull() & sk.notnull(), ibis.literal(_OTHER, "int8")))
        columns: dict[str, Any] = {"kind": ibis.cases(*cases)}
        columns |= {f"w{at}": rows[f"w{at}"] for at in wants.values()}
        known = rows.select(**columns)
        # No filter here: engines would push it down to the items, and read their JSON twice.
        named = {want: known[f"w{at}"] for want, at in wants.items()}
        pk, sk = named[self._pk, "S"], named[self._sk, "S"]
        kept = {"kind": known.kind, "a": self._each(known.kind, {k.model: self._owner(k, pk) for k in self._kinds})}
        ends = {each.model: self._target(each, named) for each in self._kinds if self._has_target(each)}
        if ends:
            kept["b"] = self._each(known.kind, ends)
        if self._keyed:
            kept |= {"pk": pk, "sk": sk}
        kept |= {name: named[want] for want, name in self._columns.items()}
        return known.select(**kept)

    def _require_whole(self, export: Export) -> None:
        """Refuses an export with lines that hold no item, or other items than it tells: engines go over both."""
        empty = self._by_number.get(None, 0)
        if empty:
            raise InvalidExport(
                f"{export.place} cannot be read, though it is what its checksums say: {empty:,} of its lines hold no "
                f"item with {self._pk!r} and {self._sk!r}, the key of {self.layout.table!r}; export again"
            )
        found = sum(self._by_number.values())
        if found != export.items:
            raise InvalidExport(
                f"{export.place} holds {found:,} items, and its manifests tell {export.items:,}; export again"
            )

    def _each(self, number: Any, by_model: Mapping[type[Any], Any]) -> Any:
        """A value for each class that has one."""
        cases = [(number == at, by_model[k.model]) for at, k in enumerate(self._kinds) if k.model in by_model]
        return cases[0][1] if len(cases) == len(self._kinds) == 1 else ibis.cases(*cases)

    def _is_of(self, kind: EntityType, named: Mapping[Want, Any]) -> Any:
        templates = self.layout.key_templates(kind)
        pk, sk = named[self._pk, "S"], named[self._sk, "S"]
        holds = matches(templates.partition, pk) & matches(templates.sort, sk)
        if isinstance(kind, NodeType) and templates.sort.parts:
            holds &= part_text(templates.sort, "id", sk) == part_text(templates.partition, "id", pk)
        if isinstance(kind, EdgeType) and templates.may_meet_node:
            holds &= ~self._is_of(kind.source, named)
        if templates.type_attribute is not None:
            holds &= (named[templates.type_attribute, "S"] == kind.label).fill_null(True)
        return holds.fill_null(False)

    def _owner(self, kind: EntityType, pk: Any) -> Any:
        name = "source.id" if isinstance(kind, EdgeType) else "id"
        return part_text(self.layout.key_templates(kind).partition, name, pk)

    def _target(self, kind: EdgeType, named: Mapping[Want, Any]) -> Any:
        attribute, template, name = self._target_place(kind)
        text = part_text(template, name, named[attribute, "S"])
        # Keys that no template declares escape what they hold, also where others do not.
        return (
            text
            if template.quoting.escape == self._node_quoting(kind.target).escape
            else unquoted(template.quoting, text)
        )

    def _node_quoting(self, kind: NodeType) -> Any:
        return self.layout.key_templates(kind).partition.quoting

    def _has_target(self, kind: EntityType) -> TypeGuard[EdgeType]:
        return isinstance(kind, EdgeType) and TARGET in self._wanted[kind.model]

    def _target_place(self, kind: EdgeType) -> tuple[str, Template, str]:
        """The key attribute that tells an edge's target, its template, and the part."""
        templates = self.layout.key_templates(kind)
        for attribute, template in ((self._sk, templates.sort), *templates.others.items()):
            for name in ("target.id", templates.target_field):
                if name is not None and name in template.told:
                    return attribute, template, name
        raise InvalidModel(f"no key of {kind.name} tells its target")

    def _told_elsewhere(self, kind: EntityType) -> list[str]:
        if not self._has_target(kind):
            return []
        attribute, _, _ = self._target_place(kind)
        return [] if attribute == self._sk else [attribute]

    # --- what was read -------------------------------------------------------------------------

    def table(self, kind: EntityType, *, as_stored: bool = False) -> ir.Table:
        """The rows of a class: `id`, or `source` and perhaps `target`; keys and wanted columns behind them.

        A field whose attribute is absent has its default, unless rows are wanted as they are stored.
        """
        assert self._entities is not None
        number = next(at for at, each in enumerate(self._kinds) if each is kind)
        rows = self._entities.filter(self._entities.kind == number)
        columns = {"source" if isinstance(kind, EdgeType) else "id": rows.a}
        if self._has_target(kind):
            columns["target"] = rows.b
        if kind.model in self._keyed:
            columns |= {"pk": rows.pk, "sk": rows.sk}
        for want in self._wanted[kind.model] - {TARGET}:
            columns[self.column(want)] = (
                self._key_part(kind, want, rows)
                if want[0] == KEY_PART
                else self._attribute(kind, want, rows, as_stored)
            )
        return rows.select(**columns)

    def _attribute(self, kind: EntityType, want: Want, rows: ir.Table, as_stored: bool) -> Any:
        column, default = rows[self.column(want)], self._defaults.get((kind.model, want))
        if default is None or as_stored:
            return column
        if default.whole is None:
            return column.fill_null(default.text)
        return ibis.ifelse(rows[self.column(default.whole)].isnull(), default.text, column)

    def _key_part(self, kind: EntityType, want: Want, rows: ir.Table) -> Any:
        sort = self.layout.key_templates(kind).sort
        return unquoted(sort.quoting, part_text(sort, want[1], rows.sk))

    def column(self, want: Want) -> str:
        """The name of the column that holds a want."""
        return f"p_{want[1]}" if want[0] == KEY_PART else self._columns[want]

    def has(self, kind: EntityType) -> bool:
        return any(each is kind for each in self._kinds)

    def id_of(self, kind: NodeType, text: str) -> Any:
        """The id that a text in a table stands for."""
        plain = self._node_quoting(kind).unquote(text)
        return kind.id(value_of(kind.id_type, plain))

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many rows there are, by label."""
        if self._entities is None:
            return {}
        return {kind.label: self._by_number.get(at, 0) for at, kind in enumerate(self._kinds)}

    @cached_property
    def _by_number(self) -> dict[int | None, int]:
        """How many rows there are, by the number of their class; lines without an item have none."""
        assert self._entities is not None
        counted = self._entities.group_by("kind").agg(rows=self._entities.count())
        return {row["kind"]: int(row["rows"]) for row in self.engine.fetch(counted)}


def merged(*wanted: Iterable[tuple[type[Any], Iterable[Want]]]) -> dict[type[Any], set[Want]]:
    """Several lists of wants as one."""
    found: dict[type[Any], set[Want]] = {}
    for each in wanted:
        for model, wants in each:
            found.setdefault(model, set()).update(wants)
    return found


def _is_attribute(want: Want) -> bool:
    return want != TARGET and want[0] != KEY_PART
