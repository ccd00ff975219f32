"""What is inferred, as values: classes with their fields and key templates, and the layout of their table."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.inferring.hints import Hint
from adjoin.tables import IndexDefinition, TableDefinition

Kind: TypeAlias = Literal["node", "child", "edge"]


@dataclass(frozen=True)
class FieldSpec:
    """A field of a class."""

    name: str
    hint: Hint
    attribute: str | None = None
    """The attribute in which it is stored; None for a field that only keys hold."""
    is_optional: bool = False
    """Whether some items lack it."""
    may_be_null: bool = False
    """Whether some items have a null there."""
    marks: tuple[str, ...] = ()
    """What else is declared of it, such as "Indexed()"."""
    default: str | None = None
    comment: str = ""

    @property
    def annotation(self) -> str:
        hint = f"{self.hint.text} | None" if self.is_optional or self.may_be_null else self.hint.text
        marks = [*self.marks]
        if self.hint.stored is not None:
            given = f', type="{self.hint.tag}"' if self.hint.stored.startswith("%") and self.hint.tag == "N" else ""
            marks.append(f'Stored("{self.hint.stored}"{given})')
        if self.attribute is not None and self.attribute != self.name:
            marks.append(f"Field(alias={quoted(self.attribute)})")
        return f"Annotated[{', '.join([hint, *marks])}]" if marks else hint


@dataclass(frozen=True)
class ModelSpec:
    """A class, and where its items are."""

    name: str
    kind: Kind
    key: tuple[FieldSpec, ...]
    """The fields of its id; of a child and of an edge, those besides their ends."""
    fields: tuple[FieldSpec, ...]
    partition: str | None = None
    sort: str | None = None
    indexes: dict[str, str | tuple[str | None, str]] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    type: str | None = None
    ends: tuple[str, ...] = ()
    """The parent of a child; the source and the target of an edge."""
    options: tuple[str, ...] = ()
    """Further class keywords, such as 'label="C"'."""
    count: int = 0
    notes: tuple[str, ...] = ()

    @property
    def has_keys(self) -> bool:
        return bool(self.partition or self.sort or self.indexes or self.attributes or self.type)

    @property
    def base(self) -> str:
        if self.kind == "node":
            return "Node"
        return f"{'Child' if self.kind == 'child' else 'Edge'}[{', '.join(self.ends)}]"

    @property
    def keywords(self) -> list[str]:
        names = [each.name for each in self.key]
        found = []
        if names != ([] if self.kind == "edge" else ["id"]):
            found.append(f"key=({', '.join(map(quoted, names))}{',' if len(names) == 1 else ''})")
        return [*found, *self.options]


@dataclass(frozen=True)
class Program:
    """All classes of a table with its layout."""

    definition: TableDefinition
    classes: tuple[ModelSpec, ...]
    type_attribute: str | None = None
    indexes: tuple[IndexDefinition, ...] = ()
    """The indexes of the table that are declared; adjoin's own layouts declare theirs themselves."""
    layout: Literal["keys", "list", "graph"] = "keys"
    """Explicit key templates, or one of adjoin's own layouts as it is: an adjacency list, a materialized graph."""
    shards: int | None = None
    notes: tuple[str, ...] = ()

    def named(self, name: str) -> ModelSpec:
        return next(each for each in self.classes if each.name == name)


def quoted(text: str) -> str:
    """A text as a literal in the quotes that formatters prefer."""
    shown = repr(text)
    if '"' in text and "'" not in text:
        return shown
    inner = shown[1:-1].replace("\\'", "'") if shown[0] == "'" else shown[1:-1]
    return '"' + (inner.replace('"', '\\"') if shown[0] == "'" else inner) + '"'
