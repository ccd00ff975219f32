"""`adjoin render`: the table of your classes for AWS's own tools, told from the module they are in.

The module is imported, and nothing is opened: no file, no service.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any, get_args

from adjoin import Edge, Node, aws
from adjoin.cli.command import Command, meant
from adjoin.errors import AdjoinError, InvalidModel, InvalidValue, NotFound
from adjoin.tables import TableDefinition

KINDS = ("cloudformation", "terraform", "cdk", "workbench", "policy")
# Options that mean something for one kind only.
_ONLY_FOR = {
    "workbench": ("sample",),
    "policy": ("access", "key", "pattern", "tenant", "region", "account", "partition"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", choices=KINDS, help=", ".join(KINDS))
    parser.add_argument("module", metavar="MODULE", help="the module with your classes, or MODULE:LAYOUT")
    parser.add_argument("--models", metavar="NAME", help="the list of classes in the module (default: all it has)")
    parser.add_argument("--name", metavar="T", help="the table's name, in place of the layout's")
    parser.add_argument("--sample", metavar="NAME", help="workbench: nodes and edges in the module to show")
    parser.add_argument(
        "--access", metavar="A", action="append", choices=get_args(aws.Access), help="policy: a kind of access"
    )
    parser.add_argument("--key", metavar="K", action="append", help="policy: only this partition key")
    parser.add_argument("--pattern", metavar="P", action="append", help="policy: only partition keys like this")
    parser.add_argument("--tenant", metavar="T", help="policy: only the keys of this tenant")
    parser.add_argument("--region", metavar="R", help="policy: the region (default: any)")
    parser.add_argument("--account", metavar="N", help="policy: the account (default: any)")
    parser.add_argument("--partition", metavar="P", help="policy: aws, aws-cn or aws-us-gov (default: aws)")


def run(arguments: argparse.Namespace) -> None:
    for kind, options in _ONLY_FOR.items():
        given = [option for option in options if getattr(arguments, option) is not None]
        if given and kind != arguments.kind:
            raise InvalidValue(f"--{given[0]} is for {kind}, and {arguments.kind} has no use for it; leave it out")
    name, _, layout_name = arguments.module.partition(":")
    module = _imported(name)
    models = _models(module, arguments.models)
    layout = _layout(module, layout_name)
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
            sample = _named(module, arguments.sample) if arguments.sample else ()
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


# --- what a module holds -----------------------------------------------------------------------


def _imported(name: str) -> ModuleType:
    """The module; the directory the command is run in is looked at first, as by `python -m`."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise NotFound(f"there is no module {name} here or in this environment; name it as in an import") from None
        raise InvalidModel(f"the module {name} cannot be imported: {error}") from error
    except AdjoinError:
        raise
    except Exception as error:
        raise InvalidModel(f"the module {name!r} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(here)


def _named(module: ModuleType, name: str) -> list[Any]:
    known = tuple(each for each in vars(module) if each.isidentifier() and not each.startswith("_"))
    if name not in vars(module):
        raise NotFound(f"the module {module.__name__} has no {name!r}; {meant(name, known)}")
    value = getattr(module, name)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidValue(f"{module.__name__}.{name} is {value!r}; it must be a list")
    return list(value)


def _models(module: ModuleType, name: str | None) -> list[Any]:
    if name is not None:
        return _named(module, name)
    # Pydantic leaves classes of its own in a module, such as "Edge[Student, Course]", which no program can name.
    classes = [each for name, each in vars(module).items() if name.isidentifier() and isinstance(each, type)]
    found = [each for each in dict.fromkeys(classes) if issubclass(each, Node | Edge) and each not in (Node, Edge)]
    if not found:
        raise NotFound(f"the module {module.__name__} has no Node or Edge classes; name the module that has them")
    return found


def _layout(module: ModuleType, name: str) -> Any:
    layouts = {
        each: value
        for each, value in vars(module).items()
        if hasattr(value, "bind") and hasattr(value, "table") and not isinstance(value, type)
    }
    if name:
        if name not in layouts:
            raise NotFound(f"the module {module.__name__} has no layout {name!r}; {meant(name, tuple(layouts))}")
        return layouts[name]
    if len({id(value) for value in layouts.values()}) > 1:
        raise InvalidModel(
            f"the module {module.__name__} has several layouts: {', '.join(layouts)}; "
            f"choose one with {module.__name__}:{next(iter(layouts))}"
        )
    return next(iter(layouts.values()), None)


COMMAND = Command("render", "renders your table for AWS's own tools", add_arguments, run, takes_file=False)
