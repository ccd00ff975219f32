"""Calls of operations, as a client makes them: validated, performed by a store, and answered in the service's form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
from botocore.model import ServiceModel, Shape
from botocore.parsers import create_parser
from botocore.validate import ParamValidator

from adjoin.errors import AdjoinError
from adjoin.requests import DescribeTable, TableResponse
from adjoin.server.operations import OPERATIONS as TABLE_OPERATIONS
from adjoin.server.operations import STREAM_OPERATIONS
from adjoin.server.operations.interface import AnswerBody, Operation, Refused
from adjoin.server.operations.refusals import refusal
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import TableDefinition

OPERATIONS: dict[str, Operation] = {**TABLE_OPERATIONS, **STREAM_OPERATIONS}
_SESSION = botocore.session.get_session()
_MODELS = {name: _SESSION.get_service_model(name) for name in ("dynamodb", "dynamodbstreams")}

NOT_IN_THE_MODEL = {"TableThroughputModeSummary"}
"""What the service tells without saying so."""


class Calls:
    """An embedded store behind the operations."""

    def __init__(self, store: SQLiteStore) -> None:
        self.store = store

    def definition(self, name: str) -> TableDefinition:
        (response,) = self.store.execute([DescribeTable(name)])
        assert isinstance(response, TableResponse)
        return response.definition

    def __call__(self, name: str, **parameters: Any) -> Any:
        operation = OPERATIONS[name]
        request = operation.validated(json.dumps(parameters).encode())
        (response,) = self.store.execute([operation.request(request, self)])
        answer = operation.answer(request, response, self)
        require_form(name, answer)
        return answer

    def refusal(self, name: str, **parameters: Any) -> tuple[str, str | None]:
        """The code and the words with which a call is refused before it is performed."""
        with pytest.raises(AdjoinError) as caught:
            self(name, **parameters)
        assert isinstance(caught.value, Refused)
        return caught.value.code, caught.value.message

    def fault(self, name: str, **parameters: Any) -> dict[str, Any]:
        """What a call is refused with, wherever that is found: its code, its words, and what is said besides."""
        with pytest.raises(AdjoinError) as caught:
            self(name, **parameters)
        refused = refusal(caught.value, parameters)
        return {"code": refused.code, "message": refused.message, **refused.members}


def _model(operation: str) -> ServiceModel:
    return _MODELS["dynamodbstreams" if operation in STREAM_OPERATIONS else "dynamodb"]


def require_form(operation: str, answer: AnswerBody | None) -> None:
    """The answer must be what the service's own description of the operation says, and nothing else."""
    shape = _model(operation).operation_model(operation).output_shape
    if shape is None or answer is None:
        assert shape is answer
        return
    unknown = list(_unknown(answer, shape, operation))
    assert not unknown, unknown
    body = json.dumps(answer).encode()
    parsed = create_parser("json").parse({"body": body, "headers": {}, "status_code": 200}, shape)
    del parsed["ResponseMetadata"]
    report = ParamValidator().validate(parsed, shape).generate_report().splitlines()
    # The least values are those of inputs: the service itself tells of 0 units and 0 decreases.
    faults = [line for line in report if "valid min value: 1" not in line]
    assert not faults, faults


def _unknown(value: Any, shape: Shape, place: str) -> Iterator[str]:
    if shape.type_name == "structure":
        for name, inner in value.items():
            if name in shape.members:
                yield from _unknown(inner, shape.members[name], f"{place}.{name}")
            elif name not in NOT_IN_THE_MODEL:
                yield f"{place}.{name}"
    elif shape.type_name == "list":
        for inner in value:
            yield from _unknown(inner, shape.member, place)
    elif shape.type_name == "map":
        for inner in value.values():
            yield from _unknown(inner, shape.value, place)
