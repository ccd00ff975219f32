"""`adjoin completion`: prints a script that completes commands, options and their values in a shell.

The script holds all words, so that a key press does not start Python: importing adjoin takes half a second. Argcomplete
would start it each time. Shtab makes scripts like these, and would be one more package for everybody to install.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from adjoin.cli.command import Command

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="the shell: " + ", ".join(SHELLS))


def run_with(build: Callable[[], argparse.ArgumentParser]) -> Callable[[argparse.Namespace], None]:
    """The command for the parser that `build` makes, which this module cannot import."""

    def run(arguments: argparse.Namespace) -> None:
        commands = parsers_of(build())
        match arguments.shell:
            case "bash":
                print(_bash(commands), end="")
            case "zsh":
                print(_ZSH + _bash(commands), end="")
            case _:
                print(_fish(commands), end="")

    return run


Parsers = dict[str, argparse.ArgumentParser]


def parsers_of(parser: argparse.ArgumentParser) -> Parsers:
    """The parsers of the commands of a parser, by name; none if it has no commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    return (action for action in parser._actions if action.option_strings)


def _words(parser: argparse.ArgumentParser) -> str:
    return " ".join(option for action in _options(parser) for option in action.option_strings)


def _chosen(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """The options that take one of some words, and these words."""
    for action in _options(parser):
        if action.choices is not None:
            yield "|".join(action.option_strings), " ".join(map(str, action.choices))


def _first_words(parser: argparse.ArgumentParser) -> str:
    """The words that the first argument may be; nothing if it may be anything."""
    first = next((action for action in parser._actions if not action.option_strings), None)
    return "" if first is None or first.choices is None else " ".join(map(str, first.choices))


# --- bash and zsh ------------------------------------------------------------------------------

_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
"""zsh runs completions of bash."""

_BASH = """\
# Completion of adjoin; made by `adjoin completion bash`.
_adjoin() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}"
    local at=2 words=""
    COMPREPLY=()
    if (( COMP_CWORD == 1 )); then
        COMPREPLY=( $(compgen -W "{commands}" -- "$current") )
        return
    fi
    if [[ "$command" == explain ]] && (( COMP_CWORD > 2 )); then
        command="${{COMP_WORDS[2]}}"
        at=3
    fi
    case "$command:$previous" in
{values}
    esac
    if [[ -z "$words" && "$current" == -* ]]; then
        case "$command" in
{options}
        esac
    elif [[ -z "$words" ]] && (( COMP_CWORD == at )); then
        case "$command" in
{first}
        esac
    fi
    if [[ -n "$words" ]]; then
        COMPREPLY=( $(compgen -W "$words" -- "$current") )
    fi
}}
complete -o default -F _adjoin adjoin
"""


def _bash(commands: Parsers) -> str:
    def cases(found: Iterator[tuple[str, str]]) -> str:
        return "\n".join(f'            {pattern}) words="{words}" ;;' for pattern, words in found)

    values = (
        ("|".join(f"{name}:{option}" for option in options.split("|")), words)
        for name, parser in commands.items()
        for options, words in _chosen(parser)
    )
    return _BASH.format(
        commands=" ".join([*commands, "--help", "--version"]),
        values=cases(values),
        options=cases((name, _words(parser)) for name, parser in commands.items()),
        first=cases((name, words) for name, parser in commands.items() if (words := _first_words(parser))),
    )


# --- fish --------------------------------------------------------------------------------------


def _fish(commands: Parsers) -> str:
    lines = ["# Completion of adjoin; made by `adjoin completion fish`."]
    for name, parser in commands.items():
        lines.append(f"complete -c adjoin -n __fish_use_subcommand -f -a {name} -d {_quoted(parser.description or '')}")
        within = f"-n '__fish_seen_subcommand_from {name}'"
        if words := _first_words(parser):
            lines.append(f"complete -c adjoin {within} -f -a {_quoted(words)}")
        for action in _options(parser):
            long = action.option_strings[-1].removeprefix("--")
            takes = "" if action.nargs == 0 else " -r"
            chosen = "" if action.choices is None else f" -f -a {_quoted(' '.join(map(str, action.choices)))}"
            lines.append(f"complete -c adjoin {within} -l {long}{takes}{chosen} -d {_quoted(action.help or '')}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def command(build: Callable[[], argparse.ArgumentParser]) -> Command:
    return Command(
        "completion",
        "prints a script that completes commands and options in your shell",
        add_arguments,
        run_with(build),
        takes_file=False,
    )
