"""What follows from an answer that was lost: which requests may be sent again, and what a later answer says.

A request that was repeated because an answer was lost may be refused because of its own first attempt, or return what
that attempt left. If the answer shows the outcome of the first attempt, the call returns it; if not, it raises
`OutcomeUnknown`.

Most programs never lose an answer, so this is imported when the first one is lost.
"""

from __future__ import annotations

from adjoin.errors import AdjoinError, ConditionFailed, InvalidRequest, OutcomeUnknown, TransactionCanceled
from adjoin.expressions import Action, Add, Discard, IfNotExists, Path, Remove, Set, Value
from adjoin.items import normal_item
from adjoin.requests import (
    BatchGet,
    BatchWrite,
    Check,
    Delete,
    Get,
    ItemResponse,
    Put,
    Query,
    Request,
    Response,
    Scan,
    TransactGet,
    TransactWrite,
    Update,
)
from adjoin.values import Item

# --- before a request is sent again ------------------------------------------------------------


def is_safe_in_doubt(request: Request | Check) -> bool:
    """Whether repeating a request does no harm if it was already applied.

    That is true for reads and for writes that set a state. The service recognises a repeated transaction by its token.
    A conditional write that was applied either fails its condition when it is repeated, or writes the same again.
    """
    if isinstance(request, Update):
        return all(map(_sets_a_state, request.actions))
    return isinstance(request, _SAFE)


_SAFE = (Get, BatchGet, TransactGet, Query, Scan, Put, Delete, Check, BatchWrite, TransactWrite)


def _sets_a_state(action: Action) -> bool:
    match action:
        case Set():
            # Setting an element beyond the end of a list appends it, each time.
            return not _is_element(action.path) and (
                isinstance(action.value, Value)
                or (
                    isinstance(action.value, IfNotExists)
                    and isinstance(action.value.default, Value)
                    and action.value.path == action.path
                )
            )
        case Remove():
            # Removing an element of a list moves the others up, so a second time removes another element.
            return not _is_element(action.path)
        case Add():
            return "N" not in action.value
        case Discard():
            return True


def _is_element(path: Path) -> bool:
    return isinstance(path.steps[-1], int)


# --- after it was sent again -------------------------------------------------------------------


def settled(request: Request, error: AdjoinError) -> Response:
    """The response, if the error shows that an earlier attempt succeeded; else raises an error."""
    # The first attempt may have been applied, so that the condition of the second one fails because of it.
    if isinstance(error, ConditionFailed):
        if _is_as_wanted(request, error):
            return ItemResponse(None)
        if error.item is not None or isinstance(request, Delete):
            raise _unknown("a conditional write was lost, and its condition does not hold now", error) from error
    elif isinstance(request, TransactWrite) and not _knew_the_token(error) and not _is_safe_anew(request):
        raise _unknown("a transaction was lost, and calling again could apply it twice", error) from error
    raise error


def _is_as_wanted(request: Request, error: ConditionFailed) -> bool:
    """Whether the stored item is what the request would have left."""
    match request:
        case Put(return_old=False):
            return error.item is not None and _same(request.item, dict(error.item))
        case Delete(return_old=False):
            return error.item is None
    return False


def _knew_the_token(error: AdjoinError) -> bool:
    """Whether the service refused this attempt, and therefore no earlier attempt with the same token was applied."""
    return isinstance(error, TransactionCanceled | InvalidRequest) and not error.retryable


def _is_safe_anew(request: TransactWrite) -> bool:
    """Whether it may be repeated with a new token, with which the service does not recognise it."""
    return all(map(is_safe_in_doubt, request.writes))


def check_before(request: Request, response: Response) -> None:
    """Raises if the item "before" in a response may be what an earlier attempt wrote."""
    item = response.item if isinstance(response, ItemResponse) else None
    match request:
        case Put(return_old=True):
            is_known = item is None or not _same(request.item, item)
        case Delete(return_old=True):
            is_known = item is not None
        case Update(returns="old" | "updated_old"):
            is_known = False
        case _:
            is_known = True
    if not is_known:
        raise OutcomeUnknown(
            "the answer to a write was lost; the write is applied now, but the item before it is unknown"
        )


def _same(one: Item, other: Item) -> bool:
    return normal_item(one)[0] == normal_item(other)[0]


def _unknown(what: str, error: AdjoinError) -> OutcomeUnknown:
    unknown = OutcomeUnknown(
        f"the answer to {what}: it may have been applied or not; read the items and decide ({error.args[0]})"
    )
    unknown.request_id = error.request_id
    return unknown
