"""What an outcome means where an earlier attempt, whose answer was lost, may have been applied.

A request that was repeated may be refused because of itself, and may answer with what it left. What can
be told from the answer is told; what cannot is `OutcomeUnknown`.
"""

from __future__ import annotations

from adjoin.errors import AdjoinError, ConditionFailed, InvalidRequest, OutcomeUnknown, TransactionCanceled
from adjoin.items import normal_item
from adjoin.requests import Delete, ItemResponse, Put, Request, Response, TransactWrite, Update
from adjoin.stores.dynamodb.retries import is_safe_in_doubt
from adjoin.values import Item


def settled(request: Request, error: AdjoinError) -> Response:
    """The answer that an error means in truth; raises what remains an error."""
    if isinstance(error, ConditionFailed):
        if _is_as_wanted(request, error):
            return ItemResponse(None)
        if error.item is not None or isinstance(request, Delete):
            raise _unknown("a conditional write was lost, and its condition does not hold now", error) from error
    elif isinstance(request, TransactWrite) and not _knew_the_token(error) and not _is_safe_anew(request):
        raise _unknown("a transaction was lost, and calling again could apply it twice", error) from error
    raise error


def _is_as_wanted(request: Request, error: ConditionFailed) -> bool:
    """Whether what is there now is what the request was to leave."""
    match request:
        case Put(return_old=False):
            return error.item is not None and _same(request.item, dict(error.item))
        case Delete(return_old=False):
            return error.item is None
    return False


def _knew_the_token(error: AdjoinError) -> bool:
    """Whether the service refused this attempt knowing that no earlier one was applied."""
    return isinstance(error, TransactionCanceled | InvalidRequest) and not error.retryable


def _is_safe_anew(request: TransactWrite) -> bool:
    """Whether it may be repeated with another token, by which the service does not know it."""
    return all(map(is_safe_in_doubt, request.writes))


def check_before(request: Request, response: Response) -> None:
    """Refuses an item "before" that an earlier attempt may have left so."""
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
            "the answer to a write was lost; it is applied now, but what was there before it is not known any more"
        )


def _same(one: Item, other: Item) -> bool:
    return normal_item(one)[0] == normal_item(other)[0]


def _unknown(what: str, error: AdjoinError) -> OutcomeUnknown:
    unknown = OutcomeUnknown(
        f"the answer to {what}: it may have been applied or not; read the items, and decide ({error.args[0]})"
    )
    unknown.request_id = error.request_id
    return unknown
