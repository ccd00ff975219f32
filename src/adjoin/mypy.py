"""The plugin for mypy: what plain types cannot say about the fields of a class.

    [tool.mypy]
    plugins = ["pydantic.mypy", "adjoin.mypy"]

`g.update(User, "1", nmae="Jo")` takes any keyword, because no type says that it is a field of the first argument. The
plugin replaces these keywords by the fields of that class, each with its type, so that mypy itself finds and reports
what is wrong. It also gives types to what pydantic's plugin leaves open: the ends of edges, and `field(User.name)`.

Mypy imports this module, and nothing of adjoin does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from mypy.checker import TypeChecker
from mypy.expandtype import expand_type
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import (
    ARG_NAMED,
    ARG_NAMED_OPT,
    ARG_STAR2,
    AssignmentStmt,
    CallExpr,
    Decorator,
    Expression,
    IndexExpr,
    MemberExpr,
    NameExpr,
    RefExpr,
    StrExpr,
    TypeAlias,
    TypeInfo,
    Var,
)
from mypy.plugin import (
    AttributeContext,
    CheckerPluginInterface,
    ClassDefContext,
    FunctionContext,
    FunctionSigContext,
    MethodSigContext,
    Plugin,
)
from mypy.typeops import make_simplified_union
from mypy.types import (
    AnyType,
    CallableType,
    FunctionLike,
    Instance,
    Type,
    TypeOfAny,
    TypeType,
    TypeVarId,
    UnionType,
    get_proper_type,
)

_EDGE, _CHILD = "adjoin.model.Edge", "adjoin.model.Child"
_MODEL = "pydantic.main.BaseModel"
_REF, _CHANGE, _FIELD = "adjoin.refs.Ref", "adjoin.fields.RelativeChange", "adjoin.fields.field"
_PYDANTIC = "pydantic-mypy-metadata"
_ENDS = {"source": (_EDGE, 0), "target": (_EDGE, 1), "parent": (_CHILD, 0)}
"""The ends of an edge and the parent of a child: the base class, and which of its parameters is the class there."""
_CHANGING = ("update", "upsert")
_NAMING = (*_CHANGING, "connect", "disconnect", "edge", "get")
"""The methods whose keywords are fields of a class."""
_JOINING = {"X": "source", "Y": "target"}
_BOUND = {
    "out": {"X": "source"},
    "into": {"X": "target"},
    "children": {"X": "parent"},
    **dict.fromkeys(("connect", "disconnect", "edge"), _JOINING),
}
"""The methods that take nodes at the ends of a class, with the end whose class a type variable stands for."""
_AFTER_NODE = ("out", "into", "children")
"""The methods whose first argument is a node, and the second one the class."""
_OF_GRAPHS = tuple(
    f"adjoin.{name}."
    for name in (
        "changing.Changes",
        "changing.AsyncChanges",
        "reading.Reads",
        "reading.AsyncReads",
        "graph.Graph",
        "graph.Transaction",
        "async_graph.AsyncGraph",
        "async_graph.AsyncTransaction",
        "transactions.TransactionVerbs",
    )
)


class AdjoinPlugin(Plugin):
    """What mypy asks."""

    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        return _note_extra

    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], FunctionLike] | None:
        name = fullname.rpartition(".")[2]
        is_known = fullname.startswith(_OF_GRAPHS) and (name in _NAMING or name in _BOUND)
        return partial(_signature, name) if is_known else None

    def get_function_signature_hook(self, fullname: str) -> Callable[[FunctionSigContext], FunctionLike] | None:
        found = self.lookup_fully_qualified(fullname)
        if found is None or not isinstance(found.node, TypeInfo):
            return None
        info = found.node
        return partial(_with_ends, info) if info.has_base(_EDGE) or info.has_base(_CHILD) else None

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        name = fullname.rpartition(".")[2]
        return partial(_end, name) if name in _ENDS else None

    def get_class_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        return self.get_attribute_hook(fullname)

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        return _field if fullname == _FIELD else None


def plugin(version: str) -> type[Plugin]:
    return AdjoinPlugin


def _checker(api: CheckerPluginInterface) -> TypeChecker:
    assert isinstance(api, TypeChecker)
    return api


def _named(api: TypeChecker, fullname: str, *arguments: Type) -> Instance:
    """A type of adjoin, which the module that is checked need not import."""
    module, _, name = fullname.rpartition(".")
    info = api.modules[module].names[name].node
    assert isinstance(info, TypeInfo)
    return Instance(info, [*arguments])


# --- keywords that are fields ------------------------------------------------------------------


def _note_extra(context: ClassDefContext) -> None:
    """Notes that a class takes values of any name, which only its source says."""
    keywords = dict(context.cls.keywords)
    for each in context.cls.defs.body:
        if isinstance(each, AssignmentStmt) and isinstance(each.rvalue, CallExpr):
            (target, *_), call = each.lvalues, each.rvalue
            if isinstance(target, NameExpr) and target.name == "model_config":
                keywords |= {name: value for name, value in zip(call.arg_names, call.args, strict=True) if name}
    extra = keywords.get("extra")
    if isinstance(extra, StrExpr):
        context.cls.info.metadata["adjoin"] = {"extra": extra.value}


def _takes_any(info: TypeInfo) -> bool:
    """Whether instances may have fields of any name."""
    told = (each.metadata["adjoin"]["extra"] for each in info.mro if "adjoin" in each.metadata)
    return bool(next(told, "ignore") == "allow")


def _signature(name: str, context: MethodSigContext) -> FunctionLike:
    """The signature of a call for the class that it is given: its ends for nodes, and its fields for keywords."""
    signature, api = context.default_signature, _checker(context.api)
    given = context.args[1 if name in _AFTER_NODE else 0]
    model = _model(api.expr_checker.accept(given[0])) if given else None
    if model is None:
        return signature
    if name in _BOUND:
        signature = _with_nodes(signature, model, _BOUND[name])
    if name in _NAMING and ARG_STAR2 in signature.arg_kinds:
        change = [_named(api, _CHANGE)] if name in _CHANGING else []
        fields = dict(_fields(api, model, given[0], computed=name == "get"))
        needed = _needed(model) if name == "connect" else frozenset()
        signature = _with_fields(signature, api, model, fields, change, needed)
    return signature


def _with_nodes(signature: CallableType, model: Instance, ends: Mapping[str, str]) -> CallableType:
    """The signature with the classes at the ends of a class in place of type variables.

    Mypy would take the join of several classes for a union of them, and could not say which class it expects.
    """
    known: dict[TypeVarId, Type] = {}
    for variable in signature.variables:
        at = _class_at(model, ends[variable.name]) if variable.name in ends else None
        if at is not None and not isinstance(at, AnyType):
            known[variable.id] = at
    return signature.copy_modified(
        arg_types=[expand_type(each, known) for each in signature.arg_types],
        variables=[each for each in signature.variables if each.id not in known],
    )


def _with_fields(
    signature: CallableType,
    api: TypeChecker,
    model: Instance,
    fields: Mapping[str, Type],
    change: list[Instance],
    needed: Collection[str],
) -> CallableType:
    """The signature with the fields of a class in place of any keyword."""
    taken = set(signature.arg_names)
    arguments = list(zip(signature.arg_types, signature.arg_kinds, signature.arg_names, strict=True))
    own = [
        (
            make_simplified_union([_widened(api, type_), *change]),
            ARG_NAMED if field in needed else ARG_NAMED_OPT,
            field,
        )
        for field, type_ in fields.items()
        if field not in taken
    ]
    any_keyword = [each for each in arguments if each[1] == ARG_STAR2]
    kept = [each for each in arguments if each[1] != ARG_STAR2]
    types, kinds, names = zip(*kept, *own, *(any_keyword if _takes_any(model.type) else ()), strict=True)
    return signature.copy_modified(arg_types=[*types], arg_kinds=[*kinds], arg_names=[*names])


def _model(given: Type) -> Instance | None:
    """The class of nodes or edges that a first argument is, or of which it is a ref or an instance."""
    given = get_proper_type(given)
    found: Type | None = None
    match given:
        case TypeType():
            found = given.item
        case FunctionLike() if given.is_type_obj():
            found = given.items[0].ret_type
        case Instance() if given.type.fullname == _REF:
            (found,) = given.args
        case Instance():
            found = given
    proper = None if found is None else get_proper_type(found)
    return proper if isinstance(proper, Instance) and proper.type.has_base(_MODEL) else None


def _fields(api: TypeChecker, model: Instance, context: Expression, *, computed: bool) -> Iterator[tuple[str, Type]]:
    """The fields of a class by name, and by the aliases that are known, with their types; `computed` ones if asked."""
    told = model.type.metadata.get(_PYDANTIC, {}).get("fields", {})
    for base in reversed(model.type.mro):
        if base.module_name.startswith("pydantic") or not base.has_base(_MODEL):
            continue
        for name, symbol in base.names.items():
            node = symbol.node
            is_field = isinstance(node, Var) and not node.is_classvar
            is_computed = computed and isinstance(node, Decorator) and node.func.is_property
            if not (is_field or is_computed) or name.startswith(("_", "model_")):
                continue
            if name in _ENDS and model.type.has_base(_ENDS[name][0]):
                continue
            type_ = api.expr_checker.analyze_external_member_access(name, model, context)
            yield name, type_
            alias = told.get(name, {}).get("alias")
            if alias is not None:
                yield alias, type_


def _needed(model: Instance) -> frozenset[str]:
    """The fields of a class that have no default, as far as pydantic's plugin knows; not those with two names."""
    told = model.type.metadata.get(_PYDANTIC, {}).get("fields", {})
    return frozenset(name for name, each in told.items() if not each["has_default"] and each["alias"] is None)


def _widened(api: TypeChecker, type_: Type) -> Type:
    """The type of a field with what is converted to it without loss: a whole number is a Decimal."""
    items = type_.items if isinstance(type_ := get_proper_type(type_), UnionType) else [type_]
    proper = [get_proper_type(each) for each in items]
    if any(isinstance(each, Instance) and each.type.fullname.endswith("decimal.Decimal") for each in proper):
        return make_simplified_union([*items, api.named_type("builtins.int")])
    return type_


# --- ends of edges -----------------------------------------------------------------------------


def _class_at(model: Instance, name: str) -> Type | None:
    """The class of nodes at an end of a class of edges, or of the parents of a class of children."""
    base, place = _ENDS[name]
    found = next((each for each in model.type.mro if each.fullname == base), None)
    if found is None:
        return None
    return get_proper_type(map_instance_to_supertype(model, found).args[place])


def _end(name: str, context: AttributeContext) -> Type:
    """The type of an end: an id, or a ref if nodes of several classes are there."""
    model = _model(context.type)
    at = None if model is None or context.is_lvalue else _class_at(model, name)
    if at is None or isinstance(at, AnyType):
        return context.default_attr_type
    api = _checker(context.api)
    at = get_proper_type(at)
    if isinstance(at, UnionType):
        return _named(api, _REF, at)
    if not isinstance(at, Instance) or at.type.has_base(_CHILD) or at.type.get("id") is None:
        return _any_tuple(api)
    found: Type = api.expr_checker.analyze_external_member_access("id", at, context.context)
    return found


def _any_tuple(api: TypeChecker) -> Type:
    return api.named_generic_type("builtins.tuple", [AnyType(TypeOfAny.explicit)])


def _with_ends(info: TypeInfo, context: FunctionSigContext) -> FunctionLike:
    """The signature of the constructor of an edge, whose ends take ids, refs and nodes of their classes."""
    signature, api = context.default_signature, _checker(context.api)
    made = get_proper_type(signature.ret_type)
    if not isinstance(made, Instance):
        return signature
    types = list(signature.arg_types)
    for place, name in enumerate(signature.arg_names):
        if name not in _ENDS or not isinstance(get_proper_type(types[place]), AnyType):
            continue
        at = _class_at(made, name)
        if at is not None and not isinstance(get_proper_type(at), AnyType):
            types[place] = make_simplified_union([at, _named(api, _REF, at), *_ids(api)])
    return signature.copy_modified(arg_types=types)


def _ids(api: TypeChecker) -> list[Type]:
    """The types of ids, as `adjoin.refs` lists them."""
    alias = api.modules["adjoin.refs"].names["Id"].node
    assert isinstance(alias, TypeAlias)
    return [alias.target]


# --- field(User.name) --------------------------------------------------------------------------


def _field(context: FunctionContext) -> Type:
    """The type of `field(User.name)`: mypy knows no literal text, so it takes a field of text for a name."""
    (given,), (type_,) = context.args[0], context.arg_types[0]
    found = get_proper_type(context.default_return_type)
    is_of_name = isinstance(found, Instance) and isinstance(get_proper_type(found.args[0]), AnyType)
    if not isinstance(found, Instance) or not is_of_name or not _is_of_class(given):
        return found
    return found.copy_modified(args=[type_])


def _is_of_class(given: Expression) -> bool:
    """Whether an expression is an attribute of a class, or of one of its attributes, such as `User.address.city`."""
    while isinstance(given, MemberExpr | IndexExpr):
        given = given.expr if isinstance(given, MemberExpr) else given.base
        if isinstance(given, RefExpr) and isinstance(given.node, TypeInfo):
            return True
    return False
