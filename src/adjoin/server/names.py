"""Names and ARNs of tables, as requests have them: a request may name a table by either."""

from __future__ import annotations

import re

REGION = "us-east-1"
ACCOUNT = "000000000000"
_TABLE_ARN = re.compile(r"arn:[^:]+:dynamodb:[^:]*:\d*:table/([^/]+)(?:/.*)?")


def is_arn(reference: str) -> bool:
    return reference.startswith("arn:")


def table_name(reference: str) -> str:
    """The name of the table that a name or an ARN stands for; what is neither stands for itself."""
    if not is_arn(reference):
        return reference
    found = _TABLE_ARN.fullmatch(reference)
    return found[1] if found else reference


def table_arn(name: str) -> str:
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"


def index_arn(table: str, index: str) -> str:
    return f"{table_arn(table)}/index/{index}"


def stream_arn(table: str, label: str) -> str:
    return f"{table_arn(table)}/stream/{label}"
