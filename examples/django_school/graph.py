"""The graph of the process, opened when it is first needed, and what its errors are to clients."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from functools import cache

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.module_loading import import_string

from adjoin import AdjoinError, AlreadyExists, ConditionFailed, Graph, InvalidCursor, InvalidValue, NotFound

STATUSES: dict[type[AdjoinError], int] = {
    NotFound: 404,
    AlreadyExists: 409,
    ConditionFailed: 409,
    InvalidCursor: 400,
    InvalidValue: 400,
}


@cache
def graph() -> Graph:
    """The graph that the settings name. Threads share it; a process that is forked opens its own connections."""
    opened = Graph(settings.GRAPH, import_string(settings.GRAPH_MODELS), cursor_secret=settings.SECRET_KEY)
    atexit.register(opened.close)
    return opened


class errors_as_statuses:  # noqa: N801 middleware is named as a function in the settings
    """Middleware: an `AdjoinError` of a view becomes a response with its status and its code."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, AdjoinError):
            return None
        status = STATUSES.get(type(error), 503 if error.retryable else 500)
        return JsonResponse({"code": error.code}, status=status)
