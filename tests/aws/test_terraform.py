"""Terraform resources: parsed by somebody else, and written as Terraform's own formatter writes."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import hcl2
import pytest

from adjoin import aws
from adjoin.tables import IndexDefinition, KeyAttribute, TableDefinition
from tests.aws.renderings import EVERY, TABLES
from tests.waiting import LIMIT

NASTY = ['a"b', "a\\b", "${x}", "%{x}", "$${x}", "a$b%c", "tab\tline\nend", "é\U0001f600\x07", "#{y}"]


def parsed(table: TableDefinition) -> tuple[str, dict[str, Any]]:
    """The resource's name and body."""
    (resource,) = hcl2.loads(aws.terraform(table))["resource"]
    ((kind, named),) = ((key, value) for key, value in resource.items() if not key.startswith("__"))
    assert plain(kind) == "aws_dynamodb_table"
    ((name, body),) = ((key, value) for key, value in named.items() if not key.startswith("__"))
    return plain(name), plain(body)


def plain(value: Any) -> Any:
    """Values without the parser's marks, and strings without their quotes."""
    if isinstance(value, dict):
        return {plain(key): plain(each) for key, each in value.items() if not key.startswith("__")}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, str) and value.startswith('"'):
        # HCL's escapes are JSON's, but for doubled signs and for characters beyond U+FFFF.
        text = value.replace("$${", "${").replace("%%{", "%{")
        return json.loads(text.replace("\\U0001f600", "\\ud83d\\ude00"))
    return value


def test_keys_of_several_attributes_are_blocks() -> None:
    by_round, by_player, by_region = parsed(TABLES["several"])[1]["global_secondary_index"]
    assert by_round == {
        "name": "ByRound",
        "projection_type": "INCLUDE",
        "non_key_attributes": ["score"],
        "key_schema": [
            {"attribute_name": name, "key_type": role}
            for role, names in (("HASH", ("tournament", "region")), ("RANGE", ("round", "bracket", "id")))
            for name in names
        ],
    }
    assert [each["key_type"] for each in by_player["key_schema"]] == ["HASH", "RANGE", "RANGE"]
    assert (by_region["hash_key"], by_region["range_key"]) == ("region", "tournament")
    assert "key_schema" not in by_region


def test_every_setting_is_there() -> None:
    name, body = parsed(EVERY)
    assert name == "every_setting-1"
    assert body == {
        "name": "Every.Setting-1",
        "billing_mode": "PROVISIONED",
        "read_capacity": 5,
        "write_capacity": 6,
        "hash_key": "PK",
        "range_key": "SK",
        "stream_enabled": False,
        "deletion_protection_enabled": True,
        "tags": {"cost center": "a/b:c@d", "équipe": ""},
        "attribute": [
            {"name": "PK", "type": "S"},
            {"name": "SK", "type": "N"},
            {"name": "x", "type": "S"},
            {"name": "y", "type": "B"},
        ],
        "global_secondary_index": [
            {"name": "Own", "hash_key": "x", "projection_type": "KEYS_ONLY", "read_capacity": 1, "write_capacity": 2},
            {
                "name": "Inherits",
                "hash_key": "x",
                "range_key": "y",
                "projection_type": "INCLUDE",
                "non_key_attributes": ["a", "b c"],
                "read_capacity": 5,
                "write_capacity": 6,
            },
        ],
        "local_secondary_index": [{"name": "Local", "range_key": "y", "projection_type": "ALL"}],
        "ttl": [{"attribute_name": "expires", "enabled": True}],
        "point_in_time_recovery": [{"enabled": True}],
        "lifecycle": [{"prevent_destroy": True}],
    }


@pytest.mark.parametrize("text", NASTY)
def test_any_attribute_name_is_quoted(text: str) -> None:
    table = replace(TABLES["plain"], indexes=(IndexDefinition("Idx", KeyAttribute(text)),))
    rendered = aws.terraform(table)
    assert rendered.isascii()
    _, body = parsed(table)
    assert body["global_secondary_index"][0]["hash_key"] == text


@pytest.mark.parametrize(
    ("table", "resource"),
    [
        ("InvoiceAndBills", "invoice_and_bills"),
        ("Every.Setting-1", "every_setting-1"),
        ("1st.table", "_1st_table"),
        ("-x-", "_-x-"),
        ("already_snake", "already_snake"),
    ],
)
def test_the_resource_is_named_for_the_table(table: str, resource: str) -> None:
    name, body = parsed(replace(TABLES["plain"], name=table))
    assert (name, body["name"]) == (resource, table)


@pytest.mark.skipif(shutil.which("terraform") is None, reason="needs the terraform program")
def test_terraform_itself_formats_it_the_same_way(tmp_path: Path) -> None:
    named = {name: replace(table, name=f"{table.name}-{name}") for name, table in TABLES.items()}
    for number, text in enumerate(NASTY):
        index = IndexDefinition("Idx", KeyAttribute(text))
        named[f"nasty{number}"] = replace(TABLES["plain"], name=f"nasty{number}", indexes=(index,))
    for name, table in named.items():
        (tmp_path / f"{name}.tf").write_text(aws.terraform(table))
    done = subprocess.run(
        ["terraform", "fmt", "-check", "-diff", str(tmp_path)], capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stdout + done.stderr
