"""Names and ARNs of tables, as requests have them: a request may name a table by either."""

from __future__ import annotations

import re

_TABLE_ARN = re.compile(r"arn:[^:]+:dynamodb:[^:]*:\d*:table/([^/]+)(?:/.*)?")


def is_arn(reference: str) -> bool:
    return reference.startswith("arn:")


def table_name(reference: str) -> str:
    """The name of the table that a name or an ARN stands for; what is neither stands for itself."""
    if not is_arn(reference):
        return reference
    found = _TABLE_ARN.fullmatch(reference)
    return found[1] if found else reference
