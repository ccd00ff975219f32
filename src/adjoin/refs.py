"""Refs to nodes, and what type checkers know of ids and of the two ends of an edge.

Whatever is below `TYPE_CHECKING` exists for type checkers only: it lets them follow an edge class to the classes of its
ends, and a class of nodes to the type of its id. Nothing here knows the base classes of nodes and edges: a class is
recognized by the methods that `adjoin.model` declares for type checkers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from adjoin.dataclass import dataclass

NodeT = TypeVar("NodeT", covariant=True)

if TYPE_CHECKING:
    import datetime
    import decimal
    import enum
    import uuid
    from typing import Final, Protocol, TypeAlias, dataclass_transform, overload

    from pydantic import Field, PrivateAttr
    from pydantic._internal._model_construction import ModelMetaclass

    MYPY: Final = False
    """Mypy takes a name like this for True, and pyright follows the value."""

    Id: TypeAlias = (
        str
        | int
        | bytes
        | decimal.Decimal
        | datetime.date
        | datetime.time
        | datetime.timedelta
        | uuid.UUID
        | enum.Enum
        | tuple[Any, ...]
    )
    """What may be an id: a value that keys hold, or the tuple of several."""

    F = TypeVar("F")
    I = TypeVar("I")  # noqa: E741 of an id
    Same = TypeVar("Same")
    IdT = TypeVar("IdT", covariant=True)
    FarT = TypeVar("FarT", covariant=True)
    EdgeT = TypeVar("EdgeT", covariant=True)
    FromT = TypeVar("FromT", contravariant=True)
    ToT = TypeVar("ToT", contravariant=True)

    # --- edges and children, by what they lead to ----------------------------------------------

    class Leads(Protocol[FromT, EdgeT, FarT]):
        """A class of edges or children, as a step of a walk: from a node of one class to one of another."""

        def __leaves__(self, source: FromT, /) -> tuple[EdgeT, FarT]: ...

    class LeadsBack(Protocol[FromT, EdgeT, FarT]):
        """The same in the other direction."""

        def __arrives__(self, target: FromT, /) -> tuple[EdgeT, FarT]: ...

    class LeadsBoth(Protocol[EdgeT, FarT]):
        """The same in both directions."""

        def __ends__(self) -> tuple[EdgeT, FarT]: ...

    class Leaves(Leads[FromT, EdgeT, FarT], Protocol[FromT, EdgeT, FarT]):
        """A class of edges, seen from their sources."""

        def __is_edge__(self) -> None: ...

    class Arrives(LeadsBack[FromT, EdgeT, FarT], Protocol[FromT, EdgeT, FarT]):
        """A class of edges, seen from their targets."""

        def __is_edge__(self) -> None: ...

    class Joins(Protocol[FromT, ToT, EdgeT]):
        """A class of edges between nodes of two classes."""

        def __leaves__(self, source: FromT, /) -> tuple[EdgeT, Any]: ...

        def __arrives__(self, target: ToT, /) -> tuple[EdgeT, Any]: ...

        def __is_edge__(self) -> None: ...

    class ChildOf(Protocol[FromT, EdgeT]):
        """A class of children of nodes of one class."""

        def __leaves__(self, source: FromT, /) -> tuple[EdgeT, Any]: ...

        def __is_child__(self) -> None: ...

    class ToTarget(Protocol[EdgeT, FarT]):
        """An edge with the class of its target."""

        def __leaves__(self, source: Any, /) -> tuple[EdgeT, FarT]: ...

    class ToSource(Protocol[EdgeT, FarT]):
        """An edge with the class of its source."""

        def __arrives__(self, target: Any, /) -> tuple[EdgeT, FarT]: ...

    # --- ids -----------------------------------------------------------------------------------

    class Nothing:
        """A class of which no node is: only Any fits where it is asked for."""

        def __nothing__(self) -> None: ...

    class _IsChild(Protocol):
        def __is_child__(self) -> None: ...

    class _Single(Protocol[Same, IdT]):
        """One class of nodes with a field `id`. A union of classes does not fit, because `Same` is one of them."""

        def __same__(self, other: Same, /) -> Same: ...

        @property
        def id(self) -> IdT: ...

    class _One(Protocol[Same]):
        """One class of nodes."""

        def __same__(self, other: Same, /) -> Same: ...

    class _HasId(Protocol[IdT]):
        @property
        def id(self) -> IdT: ...

    class _IdOfRef:
        """The id that a ref holds: of the type of the field `id` of its class, or a tuple."""

        @overload
        def __get__(self, ref: Ref[Nothing], owner: Any, /) -> Any: ...

        @overload
        def __get__(self, ref: Ref[_IsChild], owner: Any, /) -> tuple[Any, ...]: ...

        @overload
        def __get__(self, ref: Ref[_HasId[I]], owner: Any, /) -> I: ...

        @overload
        def __get__(self, ref: Any, owner: Any, /) -> Any: ...

        def __get__(self, ref: Any, owner: Any, /) -> Any: ...

    class SourceEnd(Generic[NodeT]):
        """The end of an edge as type checkers see it: it holds an id, or a ref if it is a union of classes."""

        @overload
        def __get__(self, edge: ToSource[Any, Nothing], owner: Any, /) -> Any: ...

        @overload
        def __get__(self, edge: ToSource[Any, _IsChild], owner: Any, /) -> tuple[Any, ...]: ...

        @overload
        def __get__(self, edge: ToSource[Any, _Single[Same, I]], owner: Any, /) -> I: ...

        @overload
        def __get__(self, edge: ToSource[Any, _One[Same]], owner: Any, /) -> tuple[Any, ...]: ...

        @overload
        def __get__(self, edge: ToSource[Any, F], owner: Any, /) -> Ref[F]: ...

        @overload
        def __get__(self, edge: None, owner: type[ToSource[Any, Nothing]], /) -> Any: ...

        @overload
        def __get__(self, edge: None, owner: type[ToSource[Any, _IsChild]], /) -> tuple[Any, ...]: ...

        @overload
        def __get__(self, edge: None, owner: type[ToSource[Any, _Single[Same, I]]], /) -> I: ...

        @overload
        def __get__(self, edge: None, owner: type[ToSource[Any, _One[Same]]], /) -> tuple[Any, ...]: ...

        @overload
        def __get__(self, edge: None, owner: type[ToSource[Any, F]], /) -> Ref[F]: ...

        def __get__(self, edge: Any, owner: Any, /) -> Any: ...

        # Pydantic's plugin for mypy takes this for the type of the field, so it has to fit what is read, too.
        if MYPY:

            def __set__(self, edge: Any, value: Any, /) -> None: ...

        else:

            def __set__(self, edge: Any, value: NodeT | Ref[NodeT] | Id, /) -> None: ...

    class TargetEnd(Generic[NodeT]):
        """The same for the other end."""

        @overload
        def __get__(self, edge: ToTarget[Any, Nothing], owner: Any, /) -> Any: ...

        @overload
        def __get__(self, edge: ToTarget[Any, _IsChild], owner: Any, /) -> tuple[Any, ...]: ...

        @overload
        def __get__(self, edge: ToTarget[Any, _Single[Same, I]], owner: Any, /) -> I: ...

        @overload
        def __get__(self, edge: ToTarget[Any, _One[Same]], owner: Any, /) -> tuple[Any, ...]: ...

        @overload
        def __get__(self, edge: ToTarget[Any, F], owner: Any, /) -> Ref[F]: ...

        @overload
        def __get__(self, edge: None, owner: type[ToTarget[Any, Nothing]], /) -> Any: ...

        @overload
        def __get__(self, edge: None, owner: type[ToTarget[Any, _IsChild]], /) -> tuple[Any, ...]: ...

        @overload
        def __get__(self, edge: None, owner: type[ToTarget[Any, _Single[Same, I]]], /) -> I: ...

        @overload
        def __get__(self, edge: None, owner: type[ToTarget[Any, _One[Same]]], /) -> tuple[Any, ...]: ...

        @overload
        def __get__(self, edge: None, owner: type[ToTarget[Any, F]], /) -> Ref[F]: ...

        def __get__(self, edge: Any, owner: Any, /) -> Any: ...

        if MYPY:

            def __set__(self, edge: Any, value: Any, /) -> None: ...

        else:

            def __set__(self, edge: Any, value: NodeT | Ref[NodeT] | Id, /) -> None: ...

    if MYPY:
        # Without the mark of dataclasses, since mypy would take the class keyword `order=` for that of dataclasses.
        class EdgeMeta(ModelMetaclass): ...

    else:

        @dataclass_transform(kw_only_default=True, field_specifiers=(Field, PrivateAttr))
        class EdgeMeta(ModelMetaclass): ...

    class Ref(Generic[NodeT]):
        """Names a node by its class and id, without loading it."""

        __match_args__ = ("model", "id")
        id = _IdOfRef()

        def __init__(self, model: type[NodeT], id: Any) -> None: ...

        @property
        def model(self) -> type[NodeT]: ...

else:

    @dataclass(frozen=True, slots=True)
    class Ref(Generic[NodeT]):
        """Names a node by its class and id, without loading it."""

        model: type[NodeT]
        id: Any

        def __repr__(self) -> str:
            return f"{self.model.__name__}.ref({self.id!r})"

        def __str__(self) -> str:
            return f"{self.model.__name__}({self.id!r})"
