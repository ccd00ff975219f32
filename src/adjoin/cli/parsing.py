"""The parser of arguments: as argparse has it, and for a mistyped word it names the one that was probably meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """Parsers of commands are of the same class, because argparse makes them of the class of their parent."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, rest = super().parse_known_args(args, namespace)
        # Where a command has its own parser, only that one knows its options, so it refuses what is left itself.
        if rest and not any(isinstance(each, argparse._SubParsersAction) for each in self._actions):
            self.error(f"unrecognized arguments: {' '.join(rest)}{self._hint(rest)}")
        return found, rest

    def _hint(self, words: Sequence[str]) -> str:
        options = [option for action in self._actions for option in action.option_strings]
        unknown = [word.partition("=")[0] for word in words if word.startswith("-")]
        # Without the hyphens, which would make any two options seem alike.
        named = {option.lstrip("-"): option for option in options}
        return _meant(unknown[0].lstrip("-"), named) if unknown else ""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [*map(str, action.choices)]
            hint = _meant(str(value), {each: each for each in known}) or f"; choose from {', '.join(known)}"
            raise argparse.ArgumentError(action, f"{value!r} is not known{hint}")

    def error(self, message: str) -> NoReturn:
        # What people type may be anything, and a message is one line that can be printed.
        line = " ".join(message.split()).encode("utf-8", "backslashreplace").decode()
        super().error(re.sub(r"[\x00-\x1f\x7f]", "?", line))


def _meant(word: str, known: Mapping[str, str]) -> str:
    """What was probably typed wrongly, of words by what is compared with."""
    close = get_close_matches(word, known, n=1)
    return f"; did you mean {known[close[0]]!r}?" if close else ""
