"""`adjoin render`: renders the table of your classes for AWS's own tools.

It imports the module with the classes, and opens neither a file nor DynamoDB.
"""

from __future__ import annotations

import argparse
import json
from types import ModuleType
from typing import Any, get_args

from adjoin import aws
from adjoin.cli.command import Command, InvalidArguments, imported, layout_in, models_in, named_in
from adjoin.tables import TableDefinition

KINDS = ("cloudformation", "terraform", "cdk", "workbench", "policy")
# Options that only one kind accepts.
_ONLY_FOR = {
    "workbench": ("sample",),
    "policy": ("access", "key", "pattern", "tenant", "region", "account", "partition"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", choices=KINDS, help="what to render: " + ", ".join(KINDS))
    parser.add_argument("module", metavar="MODULE", help="the module with your classes, or MODULE:LAYOUT")
    parser.add_argument(
        "--models", metavar="NAME", help="the list of classes in the module (default: all its Node and Edge classes)"
    )
    parser.add_argument("--name", metavar="T", help="the table's name, instead of the layout's")
    parser.add_argument("--sample", metavar="NAME", help="for workbench: a list of nodes and edges in the module")
    parser.add_argument(
        "--access",
        metavar="A",
        action="append",
        choices=get_args(aws.Access),
        help=f"for policy: {', '.join(get_args(aws.Access))} (default: read); may be repeated",
    )
    parser.add_argument(
        "--key", metavar="K", action="append", help="for policy: only this partition key; may be repeated"
    )
    parser.add_argument(
        "--pattern", metavar="P", action="append", help="for policy: only partition keys that match; may be repeated"
    )
    parser.add_argument("--tenant", metavar="T", help="for policy: only the keys of this tenant")
    parser.add_argument("--region", metavar="R", help="for policy: the region (default: any)")
    parser.add_argument("--account", metavar="N", help="for policy: the account (default: any)")
    parser.add_argument("--partition", metavar="P", help="for policy: aws, aws-cn or aws-us-gov (default: aws)")


def run(arguments: argparse.Namespace) -> None:
    for kind, options in _ONLY_FOR.items():
        given = [option for option in options if getattr(arguments, option) is not None]
        if given and kind != arguments.kind:
            raise InvalidArguments(f"--{given[0]} is for {kind} and not for {arguments.kind}; leave it out")
    name, _, layout_name = arguments.module.partition(":")
    module = imported(name)
    models = models_in(module, arguments.models)
    layout = layout_in(module, layout_name)
    table = aws.table(models, layout, arguments.name)
    print(_rendered(arguments, module, models, layout, table), end="")


def _rendered(
    arguments: argparse.Namespace, module: ModuleType, models: list[Any], layout: Any, table: TableDefinition
) -> str:
    match arguments.kind:
        case "terraform":
            return aws.terraform(table)
        case "cloudformation":
            value = aws.cloudformation(table)
        case "cdk":
            value = aws.cdk(table)
        case "workbench":
            sample = named_in(module, arguments.sample) if arguments.sample else ()
            value = aws.workbench(table, models, layout, sample=sample)
        case _:
            places = ("region", "account", "partition")
            given = {name: getattr(arguments, name) for name in places if getattr(arguments, name) is not None}
            value = aws.iam_policy(
                table,
                access=arguments.access or "read",
                leading_keys=arguments.key,
                leading_patterns=arguments.pattern,
                tenant=arguments.tenant,
                **given,
            )
    return json.dumps(value, indent=2) + "\n"


COMMAND = Command("render", "renders your table for AWS's own tools", add_arguments, run, takes_file=False)
