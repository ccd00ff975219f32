"""Models straight from stored items, in one call of pydantic's core.

For a class whose fields all have plain types, the class's own validation schema is copied with each
field's place in the stored form ({"Name": {"S": …}}) as its alias. Validating an item with it skips
the decoding of attributes in Python, which is most of what reading an edge costs.

It is only ever a short cut: where a class does not fit there is no validator, and an item that does
not pass is read again by the general way, which knows all types and says what is wrong.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic_core import SchemaError, SchemaValidator, core_schema

from adjoin.model import field_schemas

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
"""The stored type of each plain type whose stored text pydantic reads as it is."""

_WRAPPERS = ("default", "nullable")
_STRICT_CONFIG = ("strict", "extra_fields_behavior")


def given(name: str) -> str:
    """The entry under which a value that the keys tell is added to an item; no attribute is called so."""
    return "\0" + name


def given_validator(model: type[BaseModel]) -> Validate | None:
    """Validates plain values under `given` names, where no alias can be taken for the name of another field."""
    fields = {name: {**field, "validation_alias": given(name)} for name, field in field_schemas(model).items()}
    # Nested models are given by name or by alias, whichever they are stored under.
    return _validate(model, fields, by_name=True)


def wire_validator(model: type[BaseModel], attributes: Mapping[str, str]) -> Validate | None:
    """Validates a stored item with its key values added under `given` names; None if the class does not fit."""
    if any(model.__pydantic_core_schema__.get("config", {}).get(option) for option in _STRICT_CONFIG):
        return None
    fields: dict[str, Any] = {}
    for name, field in field_schemas(model).items():
        alias: list[Any] = [given(name)]
        if name in attributes:
            stored = _stored(field["schema"])
            if stored is None:
                return None
            tag, field = stored[0], {**field, "schema": stored[1]}
            # The second choice makes an attribute of another type fail, rather than look missing.
            alias = [[attributes[name], tag], [attributes[name]]]
        fields[name] = {**field, "validation_alias": alias}
    return _validate(model, fields, by_name=False)


def _validate(model: type[BaseModel], fields: dict[str, Any], *, by_name: bool) -> Validate | None:
    """The class's own validation with other fields; None for a class that has no such fields."""
    if not fields:
        return None
    schema: Any = model.__pydantic_core_schema__
    build: Any = SchemaValidator
    try:
        # Without this, pydantic's core takes the validator that the class has already, aliases and all.
        validator = build({**schema, "schema": {**schema["schema"], "fields": fields}}, _use_prebuilt=False)
    except (TypeError, SchemaError):
        return None
    # What a strict class takes from a program, say a date, is text here.
    return partial(validator.validate_python, by_alias=True, by_name=by_name, strict=False)


def _stored(schema: Any) -> tuple[str, Any] | None:
    """The stored type of a plain field and the schema that reads it, looking through wrappers."""
    if schema["type"] in _WRAPPERS:
        inner = _stored(schema["schema"])
        return None if inner is None else (inner[0], {**schema, "schema": inner[1]})
    if schema.get("strict"):
        return None
    if schema["type"] == "bytes":
        return "B", core_schema.no_info_before_validator_function(_from_base64, schema)
    is_text = schema["type"] == "enum" and schema.get("sub_type") == "str"
    tag = "S" if is_text else _TAGS.get(schema["type"])
    return None if tag is None else (tag, schema)


def _from_base64(stored: Any) -> bytes:
    if type(stored) is not str:
        raise ValueError("not stored as binary")
    return a2b_base64(stored)
