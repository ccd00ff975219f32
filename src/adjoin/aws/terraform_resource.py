"""A table as a Terraform resource, aws_dynamodb_table, in HCL as `terraform fmt` writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from adjoin.aws.definitions import check_table
from adjoin.stores.definitions import check_definition
from adjoin.tables import IndexDefinition, TableDefinition, Throughput

Value: TypeAlias = str | int | bool | list[str] | dict[str, str]


@dataclass
class _Block:
    """A block of HCL: arguments, then nested blocks."""

    head: str
    arguments: Mapping[str, Value]
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
    """The resource, named for the table in lower case; `prevent_destroy` guards the data in it."""
    check_table(table)
    check_definition(table)
    arguments: dict[str, Value] = {
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
    arguments: dict[str, Value] = {"name": index.name}
    if not index.local:
        arguments["hash_key"] = index.partition.name
    if index.sort is not None:
        arguments["range_key"] = index.sort.name
    arguments["projection_type"] = index.projection.kind
    if index.projection.attributes:
        arguments["non_key_attributes"] = list(index.projection.attributes)
    arguments |= _capacity(table.index_throughput(index))
    return _Block("local_secondary_index" if index.local else "global_secondary_index", arguments)


def _capacity(units: Throughput | None) -> dict[str, Value]:
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


def _literal(value: Value) -> str:
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
    """A quoted string in ASCII; "${" and "%{" would begin an interpolation, and are doubled."""
    escaped = "".join(_ESCAPES.get(each) or (each if " " <= each <= "~" else _code(each)) for each in text)
    return '"' + re.sub(r"([$%])(?=\{)", r"\1\1", escaped) + '"'


def _code(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
