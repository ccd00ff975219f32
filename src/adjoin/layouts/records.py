"""The attributes of one class: encodes fields as stored attributes, and decodes them.

This module handles everything except keys; the layout handles ids, ends and key attributes. A field with the value None
is not stored if its default is None, so that indexes over it are sparse. An empty set is not stored either, because
DynamoDB has no empty sets.

**The fast path for reading.** One call of pydantic's core makes an instance of a stored item. For a class whose fields
all have plain types, the class's own validation schema is copied, with the path of each field in the stored form
({"Name": {"S": …}}) as its alias. Validating an item with it skips the decoding of attributes in Python, which is most
of the cost of reading an edge. A class that does not fit has no such validator. An item that does not pass is read
again by the general code, which knows all types and says what is wrong.
"""

from __future__ import annotations

import datetime as dt
import math
from binascii import a2b_base64
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, SchemaError, SchemaValidator, core_schema

from adjoin.entity_types import Entity, EntityType
from adjoin.errors import AdjoinError, InvalidItem, InvalidModel, InvalidValue
from adjoin.field_types import is_set, problems_in, raised_by_class
from adjoin.formats import Format
from adjoin.model import ONLY_READ, field_schemas, has_load_hook, refuse_unread
from adjoin.values import SMALL_INT, AttributeValue, Item, decode, encode

# --- the fast path: instances from stored items ------------------------------------------------


Validate: TypeAlias = Callable[[dict[str, Any]], Any]

_TAGS = {
    "str": "S",
    "int": "N",
    "decimal": "N",
    "float": "N",
    "bool": "BOOL",
    "datetime": "S",
    "date": "S",
    "time": "S",
    "uuid": "S",
}
"""The stored type of each plain type whose stored text pydantic reads without decoding."""

_WRAPPERS = ("default", "nullable")
_STRICT_CONFIG = ("strict", "extra_fields_behavior")


def given(name: str) -> str:
    """The name under which a value from the keys is added to an item; no attribute can have it."""
    return "\0" + name


def given_validator(model: type[BaseModel]) -> Validate | None:
    """Validates plain values under `given` names, so that no alias is confused with the name of another field."""
    fields = {name: {**field, "validation_alias": given(name)} for name, field in field_schemas(model).items()}
    validator = _validator(model, fields)
    if validator is None:
        return None
    # The fields of nested models may be stored under their names or under their aliases. A strict class takes only a
    # date for a date, but a stored date is text.
    return partial(validator.validate_python, by_alias=True, by_name=True, strict=False)


def wire_validator(
    model: type[BaseModel],
    attributes: Mapping[str, str],
    formats: Mapping[str, Format],
    former: Mapping[str, tuple[str, ...]],
) -> Validate | None:
    """Validates a stored item with its key values added under `given` names; None if the class does not fit."""
    if any(model.__pydantic_core_schema__.get("config", {}).get(option) for option in _STRICT_CONFIG):
        return None
    fields: dict[str, Any] = {}
    for name, field in field_schemas(model).items():
        alias: list[Any] = [given(name)]
        if name in attributes:
            stored = _stored(field["schema"], formats.get(name))
            if stored is None:
                return None
            tag, field = stored[0], {**field, "schema": stored[1]}
            # With the second alias, an attribute of another type fails instead of looking absent.
            names = (attributes[name], *former.get(name, ()))
            alias = [path for each in names for path in ([each, tag], [each])]
        fields[name] = {**field, "validation_alias": alias}
    validator = _validator(model, fields)
    return None if validator is None else validator.validate_python


def _validator(model: type[BaseModel], fields: dict[str, Any]) -> SchemaValidator | None:
    """The class's own validation with other fields; None for a class that has no such fields."""
    if not fields:
        return None
    schema: Any = model.__pydantic_core_schema__
    build: Any = SchemaValidator
    try:
        # Without `_use_prebuilt=False`, pydantic's core takes the class's existing validator with the old aliases.
        # The config has what the call could say too, because each argument of a call costs time.
        config = {**schema.get("config", {}), "validate_by_alias": True, "validate_by_name": False}
        inner = {**schema["schema"], "fields": fields}
        made: SchemaValidator = build({**schema, "config": config, "schema": inner}, _use_prebuilt=False)
    except (TypeError, SchemaError):
        return None
    return made


def _stored(schema: Any, format: Format | None) -> tuple[str, Any] | None:
    """The stored type of a plain field and the schema that reads it, looking through wrappers."""
    if schema["type"] in _WRAPPERS:
        inner = _stored(schema["schema"], format)
        return None if inner is None else (inner[0], {**schema, "schema": inner[1]})
    if schema.get("strict"):
        return None
    if format is not None:
        return format.tag, core_schema.no_info_before_validator_function(format.value, schema)
    if schema["type"] == "bytes":
        return "B", core_schema.no_info_before_validator_function(_from_base64, schema)
    is_text = schema["type"] == "enum" and schema.get("sub_type") == "str"
    tag = "S" if is_text else _TAGS.get(schema["type"])
    return None if tag is None else (tag, schema)


def _from_base64(stored: Any) -> bytes:
    if type(stored) is not str:
        raise ValueError("not stored as binary")
    return a2b_base64(stored)


# --- fields and attributes ---------------------------------------------------------------------


OWN_PREFIX = "adjoin:"
"""The prefix of the names of adjoin's own attributes."""
_LAST_SECOND = int(dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC).timestamp())


class FieldRecord:
    """Encodes and decodes the fields of one class."""

    def __init__(self, kind: EntityType, unstored: Collection[str], layout_attributes: Collection[str]) -> None:
        self.kind = kind
        self._absence = {name: _absence(kind.fields[name]) for name in kind.attributes}
        special = {*kind.formats, kind.expires_at}
        self._stored = tuple(
            (name, attribute, self._absence[name], name not in special)
            for name, attribute in kind.attributes.items()
            if name not in unstored
        )
        """Each stored field with its attribute, when it is absent, and whether its values have the usual form."""
        self.stored_names = frozenset(name for name, *_ in self._stored)
        self._computed = tuple(kind.computed)
        self.unsteady: frozenset[str] = frozenset()
        """The fields from which no stored field may be computed, because they change without the class."""
        self._read = tuple(
            (name, (stored, *kind.former.get(name, ())))
            for name, stored in kind.attributes.items()
            if name not in kind.computed
        )
        """Each field with the attributes under which it may be stored; the first that an item has counts."""
        self._sets = tuple(name for name, absence in self._absence.items() if absence == "empty set")
        self._own = {*kind.attributes.values(), *layout_attributes, *_flat(kind.former)}
        self._extra = kind.takes_any
        self._formats = kind.formats
        for name in kind.formats.keys() - self.stored_names:
            raise InvalidModel(
                f"{kind.name}.{name} is marked Stored(), but it is stored in keys only; write its format into the key "
                f"template instead, such as {{{name}:%Y-%m-%d}}"
            )
        self.looks_first = _looks_first(kind.model)
        self._given = None if self.looks_first else given_validator(kind.model)
        self._validate = kind.model.__pydantic_validator__.validate_python
        self._has_load_hook = has_load_hook(kind.model)
        plain = self.stored_names >= kind.attributes.keys() and kind.expires_at is None and not self.looks_first
        plain = plain and not self._computed and not self._has_load_hook
        self.wire = wire_validator(kind.model, kind.attributes, kind.formats, kind.former) if plain else None
        """The fast path for whole items, if the class has one."""

    def compute(self, entity: Entity) -> None:
        """Notes the values of computed fields among those of the instance, where keys and attributes are read from.

        The properties of the class stay what programs see.
        """
        values = entity.__dict__
        for name in self._computed:
            # A cached property would answer what it was before a field changed.
            values.pop(name, None)
            if entity.__pydantic_extra__:
                # Pydantic moves it there when a field of a class that takes extra values is assigned or copied.
                entity.__pydantic_extra__.pop(name, None)
        before = dict(values)
        found = {}
        for name in self._computed:
            for each in self.unsteady:
                values.pop(each, None)
            try:
                found[name] = getattr(entity, name)
            except (AdjoinError, MemoryError):
                raise
            except Exception as error:
                values.update(before)
                self._refuse_unsteady(entity, name)
                raise InvalidValue(
                    f"{self.kind.name}.{name} cannot be computed: it raised {type(error).__name__}: {error}"
                ) from error
            finally:
                if self.unsteady:
                    # In the order of the fields, in which they are shown.
                    values.clear()
                    values.update(before)
        values.update(found)

    def _refuse_unsteady(self, entity: Entity, name: str) -> None:
        """Raises if a field can be computed, but only from what changes without the class."""
        if not self.unsteady:
            return
        try:
            getattr(entity, name)
        except Exception:
            return
        finally:
            entity.__dict__.pop(name, None)
        raise InvalidModel(
            f"{self.kind.name}.{name} is stored, and computed from one of {', '.join(sorted(self.unsteady))}: adjoin "
            f"sets managed fields, and a symmetric edge has its ends both ways, so what is stored could be wrong; "
            f"leave out its mark"
        )

    def encode(self, entity: Entity) -> Item:
        """The stored attributes of an instance, without its keys."""
        values = entity.__dict__
        item: Item = {}
        try:
            for name, attribute, absence, is_usual in self._stored:
                value = values[name]
                if absence and _is_absent(value, absence):
                    continue
                # The most frequent values need no call.
                if is_usual and type(value) is str and value.isascii():
                    item[attribute] = {"S": value}
                elif is_usual and type(value) is int and -SMALL_INT < value < SMALL_INT:
                    item[attribute] = {"N": str(value)}
                else:
                    item[attribute] = self.encode_field(name, value)
        except KeyError:
            refuse_unread(entity, *self.stored_names)
            raise
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
            if name == self.kind.expires_at and value is not None:
                return _encode_expiry(value)
            format = self._formats.get(name)
            return encode(value) if format is None or value is None else format.encode(value)
        except InvalidValue as error:
            raise InvalidValue(f"{self.kind.name}.{name}: {error}") from None

    def encoder(self, name: str) -> Callable[[Any], AttributeValue]:
        """The function that encodes values of one field."""
        return partial(self.encode_field, name)

    def is_absent(self, name: str, value: Any) -> bool:
        """Whether a field with this value is not stored."""
        # The fields of an id have no attribute, and always a value.
        absence = self._absence.get(name, "")
        return bool(absence) and _is_absent(value, absence)

    def decode(self, item: Item, known: dict[str, Any]) -> Any:
        """An instance from a stored item and the values in its keys; the stored fields are added to `known`."""
        try:
            self._fill_in(item, known)
        except _Misspelled as error:
            raise InvalidItem(_misfit(self.kind, item, str(error)), str(error)) from None
        extra = self._extra_in(item)
        try:
            if self._given is not None:
                made = self._given({given(name): value for name, value in known.items()} | extra)
            else:
                made = self._validate(extra | self._as_stored(item, known), by_alias=True, by_name=True)
            self.compute(made)
            if self._has_load_hook:
                self._loaded(made)
            return made
        except InvalidValue as error:
            raise InvalidItem(_misfit(self.kind, item, str(error)), str(error)) from error
        except ValidationError as error:
            problems = problems_in(error)
            raise InvalidItem(_misfit(self.kind, item, problems), problems) from None
        except (AdjoinError, MemoryError):
            raise
        except Exception as error:
            # Validators are code of the program and may raise anything. Callers get one error for all of it.
            problems = raised_by_class(error)
            raise InvalidItem(_misfit(self.kind, item, problems), problems) from error

    def _as_stored(self, item: Item, known: dict[str, Any]) -> dict[str, Any]:
        """The values with the former names of fields under which they are stored, as validators look for them."""
        found = dict(known)
        for name, (attribute, *others) in self._read:
            if others and name in found and attribute not in item:
                former = next((each for each in others if each in item), name)
                found[former] = found.pop(name)
        return found

    def _loaded(self, entity: Any) -> None:
        """Calls the hook of the class, which may set what is not stored."""
        before = dict(entity.__dict__)
        entity.after_load()
        for name in self.kind.fields:
            if entity.__dict__.get(name) != before.get(name):
                raise InvalidModel(
                    f"after_load of {self.kind.name} changed {name!r}, which is stored, so an update would write it; "
                    f"set private attributes there, and change fields where they are validated"
                )

    def decode_some(self, item: Item, known: dict[str, Any], names: tuple[str, ...]) -> Any:
        """An instance that has only these fields, and its id or its ends; all others raise `NotRead` if they are used.

        Each field is validated by itself.
        """
        try:
            self._fill_in(item, known)
            values = {name: self._one_of(name, known) for name in names}
        except (_Misspelled, InvalidValue) as error:
            raise InvalidItem(_misfit(self.kind, item, str(error)), str(error)) from None
        model = self.kind.model
        made: Any = object.__new__(model)
        own = ((name, _private_default(each)) for name, each in model.__private_attributes__.items())
        private = {name: default for name, default in own if default is not PydanticUndefined}
        object.__setattr__(made, "__dict__", {**values, ONLY_READ: names})
        object.__setattr__(made, "__pydantic_fields_set__", {*values})
        object.__setattr__(made, "__pydantic_extra__", {} if self._extra else None)
        object.__setattr__(made, "__pydantic_private__", private or None)
        return made

    def _one_of(self, name: str, known: Mapping[str, Any]) -> Any:
        if name in known:
            return self.kind.validated(name, known[name])
        info = self.kind.fields[name]
        if info.is_required():
            raise InvalidValue(f"{name} is missing")
        return info.get_default(call_default_factory=True, validated_data={})

    def decode_as_far(self, item: Item, known: dict[str, Any]) -> Any:
        """An instance in which a field that does not fit has its stored value, and a missing required field is None."""
        self._fill_in(item, known, as_far=True)
        values = {name: self._as_far(name, known) for name in self.kind.fields}
        made = self.kind.model.model_construct(_fields_set=set(known))
        made.__dict__.update(values)
        with suppress(InvalidValue):
            self.compute(made)
        return made

    def _as_far(self, name: str, known: Mapping[str, Any]) -> Any:
        if name not in known:
            info = self.kind.fields[name]
            return None if info.is_required() else info.get_default(call_default_factory=True, validated_data={})
        try:
            return self.kind.validated(name, known[name])
        except InvalidValue:
            return known[name]

    def decode_field(self, name: str, stored: AttributeValue) -> Any:
        """The value of a field that is stored so; one that is not in the field's format is as it is stored."""
        try:
            return (
                self._formats[name].decode(stored) if name in self._formats and "NULL" not in stored else decode(stored)
            )
        except ValueError:
            return decode(stored)

    def _fill_in(self, item: Item, known: dict[str, Any], *, as_far: bool = False) -> None:
        for name, attributes in self._read:
            for attribute in attributes:
                stored = item.get(attribute)
                if stored is not None:
                    known[name] = decode(stored)
                    break
        for name, format in self._formats.items():
            names = (self.kind.attributes[name], *self.kind.former.get(name, ()))
            stored = next((item[each] for each in names if each in item), None)
            if stored is None or "NULL" in stored:
                continue
            try:
                known[name] = format.decode(stored)
            except ValueError as error:
                if not as_far:
                    raise _Misspelled(f"{name}: {error}") from None
        if self.kind.expires_at in known:
            known[self.kind.expires_at] = _decode_expiry(known[self.kind.expires_at])
        for name in self._sets:
            known.setdefault(name, set())

    def _extra_in(self, item: Item) -> dict[str, Any]:
        if not self._extra and not self.looks_first:
            return {}
        return {name: decode(stored) for name, stored in item.items() if self._is_extra(name)}


def _private_default(attribute: Any) -> Any:
    return attribute.get_default() if attribute.default_factory is None else attribute.default_factory()


def _flat(former: Mapping[str, tuple[str, ...]]) -> set[str]:
    return {each for names in former.values() for each in names}


def _looks_first(model: type[BaseModel]) -> bool:
    """Whether the class has a validator that sees everything that is stored, such as fields under former names."""
    modes = {each.info.mode for each in model.__pydantic_decorators__.model_validators.values()}
    return bool(modes & {"before", "wrap"}) and model.model_config.get("extra") != "forbid"


class _Misspelled(Exception):
    """A stored value is not in the format of its field."""


def _absence(info: FieldInfo) -> str:
    """The value of a field that need not be stored: "none", "empty set", or "" if every value is stored."""
    if is_set(info):
        return "empty set"
    default = info.get_default(call_default_factory=False)
    return "none" if default is None and default is not PydanticUndefined else ""


def _is_absent(value: Any, absence: str) -> bool:
    return value is None if absence == "none" else not value


def _encode_expiry(value: dt.datetime) -> AttributeValue:
    if value.tzinfo is None:
        raise InvalidValue(f"{value} has no time zone, so the time of its expiry is unknown; give it one")
    return {"N": str(math.ceil(value.timestamp()))}


def _decode_expiry(seconds: Any) -> Any:
    # Pydantic would read a large number as milliseconds.
    is_second = isinstance(seconds, int) and abs(seconds) <= _LAST_SECOND
    return dt.datetime.fromtimestamp(seconds, dt.UTC) if is_second else seconds


def _misfit(kind: EntityType, item: Mapping[str, AttributeValue], problems: str) -> str:
    shown = ", ".join(f"{name}={next(iter(value.values()))!r}" for name, value in list(item.items())[:2])
    return f"the stored item ({shown}) is not a valid {kind.name}: {problems}; correct the item or the class"
