"""The attributes of one class: fields to stored attributes and back.

Only what is beside the keys lives here; ids, ends and key attributes are the layout's. A field whose
value is None, and would be None again if it were missing, is not stored, so that indexes over it are
sparse; neither is an empty set, which DynamoDB does not have.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Mapping
from typing import Any, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from adjoin.errors import AdjoinError, InvalidItem, InvalidValue
from adjoin.layouts.wire import given, given_validator, wire_validator
from adjoin.schema import Entity, EntityType, problems_in, raised_by_class
from adjoin.values import AttributeValue, Item, decode, encode

OWN_PREFIX = "adjoin:"
"""What the names of adjoin's own attributes begin with."""
_LAST_SECOND = int(dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC).timestamp())


class Record:
    """Encodes and decodes the fields of one class."""

    def __init__(self, kind: EntityType, unstored: Collection[str], layout_attributes: Collection[str]) -> None:
        self.kind = kind
        self._absence = {name: _absence(kind.fields[name]) for name in kind.attributes}
        self._stored = tuple(
            (name, attribute, self._absence[name])
            for name, attribute in kind.attributes.items()
            if name not in unstored
        )
        self.stored_names = frozenset(name for name, _, _ in self._stored)
        self._read = tuple(kind.attributes.items())
        self._sets = tuple(name for name, absence in self._absence.items() if absence == "empty set")
        self._own = {*kind.attributes.values(), *layout_attributes}
        self._extra = kind.takes_any
        self._given = given_validator(kind.model)
        self._validate = kind.model.__pydantic_validator__.validate_python
        plain = self.stored_names >= kind.attributes.keys() and kind.expires is None
        self.wire = wire_validator(kind.model, kind.attributes) if plain else None
        """The short cut for whole items, where the class has one."""

    def encode(self, entity: Entity) -> Item:
        """The stored attributes of an instance, without its keys."""
        values = entity.__dict__
        item: Item = {}
        for name, attribute, absence in self._stored:
            value = values[name]
            if absence and _is_absent(value, absence):
                continue
            item[attribute] = self.encode_field(name, value)
        if self._extra and entity.__pydantic_extra__:
            for attribute, value in entity.__pydantic_extra__.items():
                if not self._is_extra(attribute):
                    raise InvalidValue(
                        f"{self.kind.name} has an extra value {attribute!r}, a name that its keys or fields use"
                    )
                item[attribute] = encode(value)
        return item

    def _is_extra(self, attribute: str) -> bool:
        return attribute not in self._own and not attribute.startswith(OWN_PREFIX)

    def encode_field(self, name: str, value: Any) -> AttributeValue:
        try:
            if name == self.kind.expires and value is not None:
                return _encode_expiry(value)
            return encode(value)
        except InvalidValue as error:
            raise InvalidValue(f"{self.kind.name}.{name}: {error}") from None

    def is_absent(self, name: str, value: Any) -> bool:
        """Whether a field with this value is stored as no attribute at all."""
        absence = self._absence[name]
        return bool(absence) and _is_absent(value, absence)

    def decode(self, item: Item, known: dict[str, Any]) -> Any:
        """An instance from a stored item and what its keys tell (`known`, which is filled in)."""
        self._fill_in(item, known)
        extra = self._extra_in(item)
        try:
            if self._given is not None:
                return self._given({given(name): value for name, value in known.items()} | extra)
            return self._validate(extra | known, by_alias=True, by_name=True)
        except ValidationError as error:
            problems = problems_in(error)
            raise InvalidItem(_misfit(self.kind, item, problems), problems) from None
        except (AdjoinError, MemoryError):
            raise
        except Exception as error:
            # Validators are the program's own code, and raise what they like; nobody else need tell that from ours.
            problems = raised_by_class(error)
            raise InvalidItem(_misfit(self.kind, item, problems), problems) from error

    def decode_as_far(self, item: Item, known: dict[str, Any]) -> Any:
        """An instance where a field that does not fit has what is stored, and one that is missing is None."""
        self._fill_in(item, known)
        values = {name: self._as_far(name, known) for name in self.kind.fields}
        made = self.kind.model.model_construct(_fields_set=set(known))
        made.__dict__.update(values)
        return made

    def _as_far(self, name: str, known: Mapping[str, Any]) -> Any:
        if name not in known:
            info = self.kind.fields[name]
            return None if info.is_required() else info.get_default(call_default_factory=True, validated_data={})
        try:
            return self.kind.validated(name, known[name])
        except InvalidValue:
            return known[name]

    def _fill_in(self, item: Item, known: dict[str, Any]) -> None:
        for name, attribute in self._read:
            stored = item.get(attribute)
            if stored is not None:
                known[name] = decode(stored)
        if self.kind.expires in known:
            known[self.kind.expires] = _decode_expiry(known[self.kind.expires])
        for name in self._sets:
            known.setdefault(name, set())

    def _extra_in(self, item: Item) -> dict[str, Any]:
        if not self._extra:
            return {}
        return {name: decode(stored) for name, stored in item.items() if self._is_extra(name)}


def _absence(info: FieldInfo) -> str:
    """How a field may be missing from an item without losing its value: "", "none" or "empty set"."""
    if (get_origin(info.annotation) or info.annotation) in (set, frozenset):
        return "empty set"
    default = info.get_default(call_default_factory=False)
    return "none" if default is None and default is not PydanticUndefined else ""


def _is_absent(value: Any, absence: str) -> bool:
    return value is None if absence == "none" else not value


def _encode_expiry(value: dt.datetime) -> AttributeValue:
    if value.tzinfo is None:
        raise InvalidValue(f"{value} has no time zone, so the second of its expiry is not known; give it one")
    return {"N": str(math.ceil(value.timestamp()))}


def _decode_expiry(seconds: Any) -> Any:
    # Pydantic would take a large number for milliseconds.
    is_second = isinstance(seconds, int) and abs(seconds) <= _LAST_SECOND
    return dt.datetime.fromtimestamp(seconds, dt.UTC) if is_second else seconds


def _misfit(kind: EntityType, item: Mapping[str, AttributeValue], problems: str) -> str:
    shown = ", ".join(f"{name}={next(iter(value.values()))!r}" for name, value in list(item.items())[:2])
    return f"the stored item ({shown}) is not a valid {kind.name}: {problems}; correct the item or the class"
