"""A process that has imported the command line, and forks for each command: what `tests.cli.programs` starts.

A command is a process with its own status, folder, environment and files, as in a shell. Only the imports, which take
most of the time of a short command, were made before. It reads a command per line from stdin, as JSON, and writes the
exit status of each.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import sys
from typing import Any, NoReturn

import adjoin.cli  # noqa: F401


def _become(command: dict[str, Any]) -> NoReturn:
    """Turns this process into `python -m adjoin`, as far as the command can see."""
    # A command that never ends would otherwise hold up every test after it.
    signal.alarm(command["limit"])
    for number, name in enumerate(("given", "out", "err")):
        opened = os.open(command[name], os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(command["environment"])
    os.chdir(command["folder"])
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - open until the end
    # What the interpreter does for `python -m`: the folder in which it runs comes first.
    sys.path[0:0] = [command["folder"]]
    sys.argv = ["adjoin", *command["arguments"]]
    runpy.run_module("adjoin", run_name="__main__", alter_sys=True)
    sys.exit(0)


def main() -> None:
    # Children share the pages of what is there, until a collection writes to them.
    gc.freeze()
    for line in sys.stdin.buffer:
        command = json.loads(line)
        child = os.fork()
        if not child:
            # Beyond this function is only the end of the interpreter, which flushes and sets the status as always.
            _become(command)
        _, ended = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(ended)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
