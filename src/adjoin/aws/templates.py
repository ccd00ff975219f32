"""A graph's table as templates for AWS's own tools: CloudFormation, CDK and Terraform.

`table` gives the definition of a graph's table, and `leading_key` the partition key of a node, without opening any
store. Each renderer is a pure function of a definition:

- `cloudformation` makes a template with one resource, AWS::DynamoDB::Table. The table is kept when its stack is
  deleted, or when a change would replace it, so that a template never loses data.
- `cdk` makes the props of CDK's `CfnTable`, which are CloudFormation's properties in camel case.
- `terraform` makes a resource, aws_dynamodb_table, in HCL as `terraform fmt` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidValue, shown
from adjoin.layouts.adjacency_list import bound_layout
from adjoin.layouts.interface import Layout
from adjoin.model import Node, Ref
from adjoin.stores.definitions import check_definition, creation, key_schema
from adjoin.tables import IndexDefinition, TableDefinition, Throughput

# --- definitions -------------------------------------------------------------------------------


def table(models: Iterable[type[Any]], layout: Layout | None = None, name: str | None = None) -> TableDefinition:
    """The table that `Graph(location, models, layout)` would create; `name` replaces the layout's name."""
    return bound_layout(models, layout, name).definition


def check_table(table: object) -> None:
    """Refuses what is not a definition. Passing a graph or its classes is the usual mistake."""
    if not isinstance(table, TableDefinition):
        raise InvalidValue(
            f"{shown(table)} is not a table definition; pass aws.table(models), or aws.table(models, layout)"
        )


def leading_key(node: Node | Ref[Any], models: Iterable[type[Any]], layout: Layout | None = None) -> str:
    """The partition key of a node, given as the node or a ref, for `leading_keys` of `iam_policy`."""
    if not isinstance(node, Node | Ref):
        raise InvalidValue(f"{shown(node)} does not name a class; pass the node, or Model.ref(id)")
    bound = bound_layout(models, layout)
    kind = bound.schema.node(type(node) if isinstance(node, Node) else node.model)
    partition = bound.definition.partition
    if partition.type != "S":
        raise InvalidValue(f"the partition key {partition.name} has type {partition.type}, and IAM compares text")
    text: str = bound.node_key(kind, kind.id(node))[partition.name]["S"]
    return text


# --- CloudFormation ----------------------------------------------------------------------------


_LOGICAL_ID = "Table"


def cloudformation(table: TableDefinition) -> dict[str, Any]:
    """A complete template, to be written as JSON. Its outputs are the table's name and ARN, and its stream's ARN."""
    check_table(table)
    outputs = {
        "TableName": {"Description": "the table's name", "Value": {"Ref": _LOGICAL_ID}},
        "TableArn": {"Description": "the table's ARN", "Value": {"Fn::GetAtt": [_LOGICAL_ID, "Arn"]}},
    }
    if table.stream:
        stream = {"Fn::GetAtt": [_LOGICAL_ID, "StreamArn"]}
        outputs["StreamArn"] = {"Description": "the ARN of the table's change stream", "Value": stream}
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"The DynamoDB table {table.name}",
        "Resources": {
            _LOGICAL_ID: {
                "Type": "AWS::DynamoDB::Table",
                "DeletionPolicy": "Retain",
                "UpdateReplacePolicy": "Retain",
                "Properties": table_properties(table),
            }
        },
        "Outputs": outputs,
    }


def table_properties(table: TableDefinition) -> dict[str, Any]:
    """The properties of the resource. A property that is not set is left out."""
    check_definition(table)
    properties = creation(table)
    if table.stream:
        properties["StreamSpecification"] = {"StreamViewType": table.stream_view}
    if table.ttl is not None:
        properties["TimeToLiveSpecification"] = {"AttributeName": table.ttl, "Enabled": True}
    # These are written even if they are off, so that an update of the stack turns them off.
    properties["PointInTimeRecoverySpecification"] = {"PointInTimeRecoveryEnabled": table.point_in_time_recovery}
    properties["DeletionProtectionEnabled"] = table.deletion_protection
    return properties


# --- CDK ---------------------------------------------------------------------------------------


def cdk(table: TableDefinition) -> dict[str, Any]:
    """Props for `new dynamodb.CfnTable(this, 'Table', props)`, to be written as JSON and imported in the CDK app."""
    check_table(table)
    props: dict[str, Any] = _camel_case(table_properties(table))
    return props


def _camel_case(value: Any) -> Any:
    if isinstance(value, dict):
        return {name[0].lower() + name[1:]: _camel_case(each) for name, each in value.items()}
    return [_camel_case(each) for each in value] if isinstance(value, list) else value


# --- Terraform ---------------------------------------------------------------------------------


HclValue: TypeAlias = str | int | bool | list[str] | dict[str, str]


@dataclass
class _Block:
    """A block of HCL: arguments, then nested blocks."""

    head: str
    arguments: Mapping[str, HclValue]
    blocks: list[_Block] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        yield f"{self.head} {{"
        yield from _indented(self._body())
        yield "}"

    def _body(self) -> Iterator[str]:
        plain = {name: value for name, value in self.arguments.items() if not isinstance(value, dict)}
        width = max(map(len, plain), default=0)
        yield from (f"{name:<{width}} = {_literal(value)}" for name, value in plain.items())
        for name, value in self.arguments.items():
            if isinstance(value, dict):
                yield from ("", f"{name} = {{", *_indented(_entries(value)), "}")
        for block in self.blocks:
            yield ""
            yield from block.lines()


def terraform(table: TableDefinition) -> str:
    """The resource, named after the table in lower case; `prevent_destroy` protects its data."""
    check_table(table)
    check_definition(table)
    arguments: dict[str, HclValue] = {
        "name": table.name,
        "billing_mode": "PAY_PER_REQUEST" if table.throughput is None else "PROVISIONED",
        **_capacity(table.throughput),
        "hash_key": table.partition.name,
    }
    if table.sort is not None:
        arguments["range_key"] = table.sort.name
    arguments["stream_enabled"] = table.stream
    if table.stream:
        arguments["stream_view_type"] = table.stream_view
    arguments["deletion_protection_enabled"] = table.deletion_protection
    if table.tags:
        arguments["tags"] = dict(table.tags)
    blocks = [_Block("attribute", {"name": key.name, "type": key.type}) for key in table.key_attributes]
    blocks += [_index(table, index) for index in table.indexes]
    if table.ttl is not None:
        blocks.append(_Block("ttl", {"attribute_name": table.ttl, "enabled": True}))
    blocks.append(_Block("point_in_time_recovery", {"enabled": table.point_in_time_recovery}))
    blocks.append(_Block("lifecycle", {"prevent_destroy": True}))
    head = f'resource "aws_dynamodb_table" {_quoted(_resource_name(table.name))}'
    return "\n".join(_Block(head, arguments, blocks).lines()) + "\n"


def _index(table: TableDefinition, index: IndexDefinition) -> _Block:
    arguments: dict[str, HclValue] = {"name": index.name}
    blocks: list[_Block] = []
    if index.is_multi_attribute:
        # Instead of hash_key and range_key, which every version of the provider knows; these blocks came with 6.29.
        blocks = [
            _Block("key_schema", {"attribute_name": key["AttributeName"], "key_type": key["KeyType"]})
            for key in key_schema(index)
        ]
    else:
        if not index.local:
            arguments["hash_key"] = index.partition.name
        if index.sort is not None:
            arguments["range_key"] = index.sort.name
    arguments["projection_type"] = index.projection.kind
    if index.projection.attributes:
        arguments["non_key_attributes"] = list(index.projection.attributes)
    arguments |= _capacity(table.index_throughput(index))
    return _Block("local_secondary_index" if index.local else "global_secondary_index", arguments, blocks)


def _capacity(units: Throughput | None) -> dict[str, HclValue]:
    return {} if units is None else {"read_capacity": units.read, "write_capacity": units.write}


def _resource_name(table: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", table).lower()
    name = re.sub(r"[^a-z0-9_-]", "_", words)
    return name if name[0].isalpha() else f"_{name}"


# --- HCL ---------------------------------------------------------------------------------------


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" if line else "" for line in lines)


def _entries(value: Mapping[str, str]) -> Iterator[str]:
    quoted = {_quoted(key): _quoted(text) for key, text in value.items()}
    width = max(map(len, quoted))
    return (f"{key:<{width}} = {text}" for key, text in quoted.items())


def _literal(value: HclValue) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case list():
            return f"[{', '.join(map(_quoted, value))}]"
    return str(value)


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _quoted(text: str) -> str:
    """A quoted string in ASCII. "${" and "%{" would begin an interpolation, so their first character is doubled."""
    escaped = "".join(_ESCAPES.get(each) or (each if " " <= each <= "~" else _code(each)) for each in text)
    return '"' + re.sub(r"([$%])(?=\{)", r"\1\1", escaped) + '"'


def _code(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
