"""`dataclass` as the standard library has it, for less time at import.

The standard library compiles the text of six methods for every class, and this is most of the time that a module of
frozen values takes to import. Here the methods of comparison, hashing and printing are shared functions, and `__init__`
is compiled once for each shape of a class: how many fields it has, and which of them have a default factory. Another
class of that shape gets a copy with its own names.

Everything else is as the standard library does it; `fields`, `replace` and `asdict` work. Classes that ask for anything
else, such as ordering or `ClassVar`, are left to it. One thing differs: a class without a docstring gets none.
"""

from __future__ import annotations

import dataclasses
from _thread import get_ident
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from types import CodeType, FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, TypeAlias

_Fields: TypeAlias = tuple[Field[Any], ...]


def _decorated(
    cls: type[Any] | None = None,
    /,
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
    **others: bool,
) -> Any:
    def decorate(cls: Any) -> Any:
        return _made(cls, init, repr, eq, frozen, slots, others)

    return decorate if cls is None else decorate(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _decorated


def _made(cls: Any, init: bool, repr: bool, eq: bool, frozen: bool, slots: bool, others: dict[str, bool]) -> Any:
    if not _is_plain(cls, frozen, others):
        options = {"init": init, "repr": repr, "eq": eq, "frozen": frozen, "slots": slots, **others}
        return dataclasses.dataclass(**options)(cls)
    own = vars(cls)
    has_hash = own.get("__hash__") is not None or ("__hash__" in own and "__eq__" not in own)
    fields = _fields_of(cls, others)
    methods: dict[str, Any] = {}
    if repr:
        methods["__repr__"] = _printed(tuple(each.name for each in fields if each.repr))
    if eq:
        compared = tuple(each.name for each in fields if each.compare)
        methods["__eq__"] = _compared(compared)
        if not has_hash:
            hashed = tuple(each.name for each in fields if (each.compare if each.hash is None else each.hash))
            methods["__hash__"] = _hashed(hashed) if frozen else None
    if frozen and slots:
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in methods.items():
        # What a class defines itself stays, as in the standard library. Python gives one with `__eq__` a hash of None.
        if name not in own or name == "__hash__":
            setattr(cls, name, method)
    if frozen:
        cls.__setattr__, cls.__delattr__ = _refuse_to_set, _refuse_to_delete
    if slots:
        cls = _with_slots(cls, fields)
    if init:
        given = tuple([each for each in fields if each.init])
        _check_order(given)
        cls.__init__ = _Initializer(cls, given, frozen)
    cls.__dataclass_params__ = _parameters(init, repr, eq, frozen, slots, others.get("kw_only", False))
    return cls


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _Example:
    """A class that has a field, as the standard library makes them."""

    field: int


_EXAMPLE: Any = _Example
_ORDINARY = _EXAMPLE.__dataclass_fields__["field"]._field_type
"""What it notes at a field that is neither a `ClassVar` nor an `InitVar`."""


def _is_plain(cls: Any, frozen: bool, others: dict[str, bool]) -> bool:
    """Whether all is done here that the class asks for, and nothing is wrong with it."""
    own = vars(cls)
    annotations = own.get("__annotations__", {})
    if not others.keys() <= {"kw_only"} or own.keys() & {"__setattr__", "__delattr__"}:
        return False
    for kind in annotations.values():
        text = kind if type(kind) is str else str(kind)
        if "Var" in text or "KW_ONLY" in text:
            return False
    for name, value in own.items():
        if isinstance(value, Field):
            if name not in annotations or _is_made_without_asking(value) or _is_unhashable(value.default):
                return False
        elif name in annotations and _is_unhashable(value):
            return False
    for base in cls.__mro__[1:]:
        if "__dataclass_params__" in vars(base):
            if base.__dataclass_params__.frozen is not frozen:
                return False
            for each in vars(base)["__dataclass_fields__"].values():
                if each._field_type is not _ORDINARY or _is_made_without_asking(each):
                    return False
    return True


def _is_unhashable(default: object) -> bool:
    """The standard library refuses lists and the like as defaults, which all instances would share."""
    return type(default).__hash__ is None


def _is_made_without_asking(each: Field[Any]) -> bool:
    """Whether a field is not given to `__init__`, which has to set it all the same."""
    return not each.init and not (each.default is MISSING and each.default_factory is MISSING)


def _fields_of(cls: Any, others: dict[str, bool]) -> _Fields:
    """Finds out which fields a class has, and notes them in it as the standard library does."""
    own = vars(cls)
    found: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        found |= getattr(base, "__dataclass_fields__", {})
    for name, kind in own.get("__annotations__", {}).items():
        value = own.get(name, MISSING)
        each: Any = value if isinstance(value, Field) else dataclasses.field(default=value)
        each.name, each.type, each._field_type = name, kind, _ORDINARY
        if each.kw_only is MISSING:
            each.kw_only = others.get("kw_only", False)
        if each is value:
            if each.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, each.default)
        found[name] = each
    cls.__dataclass_fields__ = found
    fields = tuple(found.values())
    if "__match_args__" not in own:
        # As an assignment, type checkers would take it for one of a class of theirs.
        type.__setattr__(cls, "__match_args__", tuple([each.name for each in fields if each.init and not each.kw_only]))
    return fields


_PARAMETERS: dict[tuple[bool, ...], Any] = {}


def _parameters(*options: bool) -> Any:
    """What the standard library notes at a class about the options of its decorator."""
    if options not in _PARAMETERS:
        made = copy(_EXAMPLE.__dataclass_params__)
        for name, value in zip(("init", "repr", "eq", "frozen", "slots", "kw_only"), options, strict=True):
            if hasattr(made, name):
                setattr(made, name, value)
        _PARAMETERS[options] = made
    return _PARAMETERS[options]


# --- a class again, with slots -----------------------------------------------------------------


def _with_slots(cls: Any, fields: _Fields) -> Any:
    names = [each.name for each in fields]
    space = dict(vars(cls))
    inherited: set[str] = set()
    for base in cls.__mro__[1:-1]:
        slots = vars(base).get("__slots__", ())
        inherited.update((slots,) if isinstance(slots, str) else slots)
    space["__slots__"] = tuple(name for name in names if name not in inherited)
    # The descriptors of slots stand where the defaults of fields stood.
    for name in (*names, "__dict__", "__weakref__"):
        space.pop(name, None)
    made = type(cls)(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    return made


# --- methods -----------------------------------------------------------------------------------


def _values_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """The values of some attributes, always as a tuple, whose comparison takes the same object for equal."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda self: ()
    value = attrgetter(names[0])
    return lambda self: (value(self),)


def _compared(names: tuple[str, ...]) -> Any:
    values = _values_of(names)

    def same(self: Any, other: object) -> Any:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return same


def _hashed(names: tuple[str, ...]) -> Any:
    values = _values_of(names)

    def digest(self: Any) -> int:
        return hash(values(self))

    return digest


def _printed(names: tuple[str, ...]) -> Any:
    under_way: set[tuple[int, int]] = set()

    def text(self: Any) -> str:
        # A value may contain itself, as with `reprlib.recursive_repr`.
        key = id(self), get_ident()
        if key in under_way:
            return "..."
        under_way.add(key)
        try:
            return f"{self.__class__.__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"
        finally:
            under_way.discard(key)

    return text


def _is_frozen(self: Any, name: str) -> bool:
    """A class that inherits from a frozen one, and is no dataclass itself, may have other attributes."""
    return "__dataclass_params__" in vars(type(self)) or name in type(self).__dataclass_fields__


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _state(self: Any) -> list[Any]:
    """A frozen value with slots as `pickle` and `copy` take it."""
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


# --- __init__ ----------------------------------------------------------------------------------

_SHAPES: dict[tuple[Any, ...], CodeType] = {}
"""The code of `__init__` by the shape of a class: fields are `f0`, `f1` … in it."""


class _ToBeMade:
    """The default of a parameter whose field has a default factory."""

    def __repr__(self) -> str:
        return "<factory>"


_TO_BE_MADE = _ToBeMade()


class _Initializer:
    """Stands for `__init__` until it is asked for: of most classes, a program makes no instance."""

    def __init__(self, cls: Any, fields: _Fields, frozen: bool) -> None:
        self._parts = (cls, fields, frozen)

    def __get__(self, instance: Any, owner: Any) -> Any:
        cls = self._parts[0]
        made = _initializer(*self._parts)
        cls.__init__ = made
        return made.__get__(instance, owner)


def _initializer(cls: type[Any], fields: _Fields, frozen: bool) -> FunctionType:
    # Those that may only be given by name come last, as in a call.
    given = [each for each in fields if not each.kw_only]
    named = [each for each in fields if each.kw_only]
    fields = (*given, *named)
    places = {f"f{number}": each.name for number, each in enumerate(fields)}
    made = tuple(number for number, each in enumerate(fields) if each.default_factory is not MISSING)
    slots: list[Any] = [getattr(cls, each.name, None) for each in fields] if frozen else []
    if not frozen:
        how = "by name"
    elif all(isinstance(slot, MemberDescriptorType) for slot in slots):
        how = "by slot"
    else:
        how = "by object"
    shape = (len(given), len(named), made, hasattr(cls, "__post_init__"), how)
    if shape not in _SHAPES:
        _SHAPES[shape] = _compiled(*shape)
    code = _SHAPES[shape]
    code = code.replace(
        co_names=tuple([places.get(name, name) for name in code.co_names]),
        co_varnames=tuple([places.get(name, name) for name in code.co_varnames]),
        co_consts=tuple([places.get(value, value) if type(value) is str else value for value in code.co_consts]),
    )
    known: dict[str, Any] = {"_missing": _TO_BE_MADE, "_set": object.__setattr__}
    for number in made:
        known[f"_make{number}"] = fields[number].default_factory
    if how == "by slot":
        known |= {f"_set{number}": slot.__set__ for number, slot in enumerate(slots)}
    optional = {
        each.name: _TO_BE_MADE if number in made else each.default
        for number, each in enumerate(fields)
        if _is_optional(each)
    }
    function = FunctionType(
        code, known, "__init__", tuple(optional[each.name] for each in given if each.name in optional)
    )
    function.__kwdefaults__ = {each.name: optional[each.name] for each in named if each.name in optional}
    function.__annotations__ = {**{each.name: each.type for each in fields}, "return": None}
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    function.__module__ = cls.__module__
    return function


def _is_optional(each: Field[Any]) -> bool:
    return each.default is not MISSING or each.default_factory is not MISSING


def _check_order(fields: _Fields) -> None:
    before = None
    for each in fields:
        if each.kw_only:
            continue
        if _is_optional(each):
            before = each.name
        elif before is not None:
            raise TypeError(f"non-default argument {each.name!r} follows default argument {before!r}")


def _compiled(given: int, named: int, made: tuple[int, ...], has_more: bool, how: str) -> CodeType:
    every = range(given + named)
    values = [
        f"_make{number}() if f{number} is _missing else f{number}" if number in made else f"f{number}"
        for number in every
    ]
    ways = {"by name": "self.f{0} = {1}", "by slot": "_set{0}(self, {1})", "by object": "_set(self, 'f{0}', {1})"}
    lines = [ways[how].format(number, values[number]) for number in every]
    if has_more:
        lines.append("self.__post_init__()")
    parameters = ["self", *(f"f{number}" for number in range(given))]
    if named:
        parameters += ["*", *(f"f{number}" for number in range(given, given + named))]
    space: dict[str, Any] = {}
    text = f"def __init__({', '.join(parameters)}):\n" + "\n".join(f" {line}" for line in lines or ["pass"])
    exec(text, {}, space)
    code: CodeType = space["__init__"].__code__
    return code
