"""A table as the props of CDK's `CfnTable`, which are CloudFormation's properties in camel case."""

from __future__ import annotations

from typing import Any

from adjoin.aws.cloudformation_template import table_properties
from adjoin.aws.definitions import check_table
from adjoin.tables import TableDefinition


def cdk(table: TableDefinition) -> dict[str, Any]:
    """Props for `new dynamodb.CfnTable(this, 'Table', props)`, to be written as JSON and imported there."""
    check_table(table)
    props: dict[str, Any] = _camel_case(table_properties(table))
    return props


def _camel_case(value: Any) -> Any:
    if isinstance(value, dict):
        return {name[0].lower() + name[1:]: _camel_case(each) for name, each in value.items()}
    return [_camel_case(each) for each in value] if isinstance(value, list) else value
