"""`User.name`: a field as an attribute of its class, for `field(User.name)`.

Type checkers see the value that an instance has there, so an editor completes the name, and comparisons are checked. At
run time pydantic's classes have no such attribute; `FieldsOnClass`, the metaclass of nodes and edges, answers with a
`ClassField`, which only says which field is meant.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Union, get_args, get_origin

from pydantic import BaseModel

from adjoin.errors import InvalidValue, shown

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


class ClassField:
    """A field, as an attribute of its class. Fields of a nested model are attributes of it: `User.address.city`."""

    __slots__ = ("_hint", "_model", "_path")

    def __init__(self, model: str, path: str, hint: Any) -> None:
        self._model = model
        self._path = path
        self._hint = hint

    def __repr__(self) -> str:
        return f"{self._model}.{self._path}"

    def __getattr__(self, name: str) -> ClassField:
        if name.startswith("__") or name in ClassField.__slots__:
            # Asked for by `copy` and `pickle`, before there are values.
            raise AttributeError(name)
        fields: Mapping[str, Any] = getattr(_plain(self._hint), "__pydantic_fields__", {})
        if name not in fields:
            raise AttributeError(f"{self!r} has no field {shown(name)}")
        return ClassField(self._model, f"{self._path}.{name}", fields[name].annotation)

    def __getitem__(self, key: int | str) -> ClassField:
        """An element of a list, or the value of a key of a map: `User.tags[0]`, `User.settings["size"]`."""
        if isinstance(key, bool) or not isinstance(key, int | str) or key == "" or "." in str(key) or str(key) < "0":
            raise InvalidValue(
                f"{self!r} has no part {shown(key)}; pass the place of an element, or a key without dots"
            )
        hint = _plain(self._hint)
        arguments = get_args(hint)
        inner = arguments[-1] if get_origin(hint) is dict else arguments[0] if arguments else Any
        return ClassField(self._model, f"{self._path}.{key}", inner)

    def _refuse(self, *_: Any) -> NoReturn:
        raise InvalidValue(f"{self!r} is a field and has no value; compare or change field({self!r})")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __sub__ = __iter__ = _refuse
    __bool__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def _plain(hint: Any) -> Any:
    """The class in an annotation, inside of Optional and Annotated."""
    if get_origin(hint) is Annotated:
        return _plain(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        inner = [each for each in get_args(hint) if each is not NoneType]
        return _plain(inner[0]) if len(inner) == 1 else hint
    return hint


class FieldsOnClass(ModelMetaclass):
    """The metaclass of nodes and edges: the fields of a class are attributes of it."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:  # noqa: N805 of a metaclass
            fields = cls.__dict__.get("__pydantic_fields__")
            # While pydantic makes a class, it asks its bases for the names of its fields: what it finds there is a
            # default to it, or a method that is hidden.
            if fields and name in fields and not _called_by_pydantic():
                return ClassField(cls.__name__, name, fields[name].annotation)
            return super().__getattr__(name)


def _called_by_pydantic() -> bool:
    """Whether a function of pydantic asks for the attribute."""
    module = sys._getframe(2).f_globals.get("__name__", "")
    return isinstance(module, str) and module.partition(".")[0] == "pydantic"
