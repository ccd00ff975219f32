"""What fills a placeholder of a template: a field with its type and transform, or the id of a node at an end.

At an end of several classes, the placeholder is the key of a node of one of them. Pure functions over classes, parts
and texts; `template_texts` decides where placeholders stand.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from enum import Enum
from typing import Any

from adjoin.entity_types import EntityType, NodeType, NodeUnion
from adjoin.errors import InvalidModel
from adjoin.field_types import extent_of, plain_type, unknown_field
from adjoin.formats import EPOCHS
from adjoin.layouts.key_values import date_transform, transform, value_of
from adjoin.layouts.keys import Alternative, Part
from adjoin.model import Ref
from adjoin.schema import KEY_TYPES


def id_of(kind: NodeType, told: Mapping[str, Any], side: str = "") -> Any:
    """The id in the texts of its parts, by their names; None if one is missing or is not a value of its type."""
    if kind.only is not None:
        text = told.get(side + kind.only)
        # The key of a node of one of several classes was read as a ref.
        return text if text is None or isinstance(text, Ref) else value_of(kind.id_type, text)
    values = {
        side + name: value_of(plain, told[side + name])
        for name, plain in kind.part_types.items()
        if side + name in told
    }
    return kind.id_told(values, side)


def union_part(union: NodeUnion, side: str, pieces: Callable[[NodeType], list[str | Part]]) -> Part:
    """The part of a template that is the key of a node of one of several classes. `pieces` has the key of each."""
    among = tuple(_alternative(union, kind, tuple(pieces(kind))) for kind in union.classes)
    return Part(f"{side}.{union.parts[0]}", transform(""), Ref, is_id=True, among=among)


def _alternative(union: NodeUnion, kind: NodeType, pieces: tuple[str | Part, ...]) -> Alternative:
    def values(given: Any) -> dict[str, Any] | None:
        found, id = union.of(union.id(given))
        return kind.part_values(id) if found is kind else None

    def value(told: Mapping[str, Any]) -> Ref[Any] | None:
        id = id_of(kind, told)
        return None if id is None else Ref(kind.model, id)

    return Alternative(kind.name, pieces, values, value)


def no_transform(kind: EntityType, part: Part, template: str) -> InvalidModel:
    return InvalidModel(
        f"in the key template {template!r} of {kind.name}, {{{part.name}}} cannot be changed by "
        f"{part.transform.name!r}: nodes would not be found by it, or other nodes would be found"
    )


def is_number(kind: EntityType, name: str) -> bool:
    plain = plain_type(kind.field(name))
    if plain is not None and issubclass(plain, Enum):
        return all(isinstance(member.value, (int, Decimal)) for member in plain)
    return plain is not None and issubclass(plain, (int, Decimal))


def fitted(kind: EntityType, part: Part, *, is_exact: bool) -> Part:
    """A part with the type of its field; only a number keeps the transform "sortable".

    Other values sort without an encoding, and text that looks like an encoded number must not be decoded.
    """
    plain = plain_type(kind.field(part.name))
    spec = part.transform.name
    if "%" in spec or spec in EPOCHS:
        if plain is None or not issubclass(plain, dt.datetime if spec in EPOCHS else dt.date):
            raise InvalidModel(
                f"{kind.name}.{part.name} is not a date{'time' if spec in EPOCHS else ''}, so {{{part.name}:{spec}}} "
                f"has no meaning"
            )
        part = replace(part, transform=date_transform(part.transform, plain, is_exact=is_exact))
    part = replace(part, plain=plain)
    if plain is not None and plain is not Any:
        _check_plain(kind, part, plain)
    if part.transform.name != "sortable" or is_number(kind, part.name):
        return part
    return replace(part, transform=transform(""))


def bounded(kind: EntityType, part: Part) -> Part:
    """A part of an id, or a key field of an edge, with the bounds of its field: of a whole number or a moment in UTC.

    So the item "v0" can be beside the versions "v1", "v2" and so on: with `ge=1`, none of them has its key. In the same
    way, the item 0 can be beside the moments after 1970.
    """
    if part.name not in kind.fields:
        return part
    least, most = extent_of(kind.fields[part.name], part.plain)
    return part if least is None and most is None else replace(part, least=least, most=most)


def _check_plain(kind: EntityType, part: Part, plain: type) -> None:
    """Refuses a field whose values a key cannot hold, and a width for what is not a number."""
    if not issubclass(plain, KEY_TYPES):
        raise InvalidModel(
            f"{kind.name}.{part.name} is a {plain.__name__}, which cannot be part of a key; use text, a whole number, "
            f"a Decimal, a date or a UUID"
        )
    if part.transform.numbers is int and not _is_whole(plain):
        raise InvalidModel(
            f"{kind.name}.{part.name} is not a whole number, so {{{part.name}:{part.transform.name}}} has no meaning; "
            f"write {{{part.name}}}, or give the field the type int"
        )


def _is_whole(plain: type) -> bool:
    """Whether the values of a type are whole numbers; an Enum may have them as the values of its members."""
    if issubclass(plain, Enum):
        return all(isinstance(member.value, int) for member in plain)
    return issubclass(plain, int)


def unknown_placeholder(kind: EntityType, part: Part, template: str, known: list[str]) -> InvalidModel:
    # Below a child, {parent.id} is often meant for {parent.parent.id}, which looks less like it than {parent}.
    longer = [name for name in known if name.endswith(f".{part.name}")]
    detail = unknown_field(kind.name, part.name, known)
    if longer:
        detail = f"{kind.name} has no field {part.name!r}; did you mean {longer[0]!r}?"
    return InvalidModel(f"in the key template {template!r}: {detail}")
