"""Writes docs/cli-reference.md, the reference of the command line, from the help of its commands.

    python -m tests.cli.reference

A test compares the file with what this module makes, so the reference is what `--help` says.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from adjoin.cli import COMMANDS, build_parser

PATH = Path(__file__).resolve().parents[2] / "docs" / "cli-reference.md"
_INTRODUCTION = """\
# Reference of the command line

All commands with all their arguments, as `--help` prints them. This page is written by `python -m tests.cli.reference`;
[the command line](cli.md) explains each command with examples.
"""


def reference() -> str:
    return "\n".join([_INTRODUCTION, *(_section(command.name) for command in COMMANDS)])


def parser_of(command: str) -> argparse.ArgumentParser:
    (commands,) = [each for each in build_parser()._actions if isinstance(each, argparse._SubParsersAction)]
    found = commands.choices[command]
    assert isinstance(found, argparse.ArgumentParser)
    return found


def _section(command: str) -> str:
    parser = parser_of(command)
    actions = [each for each in parser._actions if each.dest != "help"]
    positional = [each for each in actions if not each.option_strings]
    options = [each for each in actions if each.option_strings]
    usage = " ".join([f"adjoin {command}", *map(_placed, positional), *(["[options]"] if options else [])])
    summary = parser.description or ""
    lines = [f"## adjoin {command}", "", f"{summary[:1].upper()}{summary[1:]}.", "", "```text", usage, "```", ""]
    if positional:
        lines += ["| argument | meaning |", "|---|---|", *(_row(_metavar(each), each.help) for each in positional), ""]
    for each in positional:
        if isinstance(each, argparse._SubParsersAction):
            lines += [
                f"COMMAND is one of {', '.join(f'`{name}`' for name in each.choices)}, with its own arguments.",
                "",
            ]
    if options:
        lines += ["| option | meaning |", "|---|---|", *(_row(_spelled(each), each.help) for each in options), ""]
    return "\n".join(lines)


def _row(name: str, help: str | None) -> str:
    meaning = (help or "the command to explain").replace("%%", "%").replace("|", "\\|")
    return f"| `{name}` | {meaning} |".replace("`" + name + "`", "`" + name.replace("|", "\\|") + "`")


def _spelled(action: argparse.Action) -> str:
    return " ".join([*action.option_strings[-1:], *_values(action)])


def _values(action: argparse.Action) -> Iterator[str]:
    if action.nargs == 0:
        return
    if isinstance(action.metavar, tuple):
        yield from action.metavar
    else:
        name = action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper()
        yield f"[{name}]" if action.nargs == "?" else name


def _metavar(action: argparse.Action) -> str:
    assert not isinstance(action.metavar, tuple)
    return action.metavar or action.dest.upper()


def _placed(action: argparse.Action) -> str:
    name = _metavar(action)
    match action.nargs:
        case "?":
            return f"[{name}]"
        case "*":
            return f"[{name} …]"
        case "+":
            return f"{name} …"
        case argparse.PARSER:
            return f"{name} …"
    return name


if __name__ == "__main__":
    PATH.write_text(reference(), encoding="utf-8")
