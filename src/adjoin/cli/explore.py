"""`adjoin explore`: shows a graph and its table on a page in the browser, until it is stopped."""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys
import threading
import webbrowser
from pathlib import Path
from types import FrameType, ModuleType

from adjoin.cli.command import Command, imported, layout_in, models_in
from adjoin.cli.serve import port_number
from adjoin.errors import AdjoinError, InvalidModel, NotFound
from adjoin.explorer import ExplorerServer, open_explored


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", metavar="LOCATION", help="a file, or a table such as dynamodb://Education")
    parser.add_argument(
        "--models",
        metavar="MODULE",
        help="the module or the file with your classes, such as shop.py, or MODULE:LAYOUT (default: infer classes)",
    )
    parser.add_argument("--table", metavar="T", help="the table; not needed if the file has only one")
    parser.add_argument(
        "--tenant", metavar="T", help="show the graph of this tenant (default: the one without a tenant)"
    )
    parser.add_argument("--port", type=port_number, default=0, help="the port (default: any free one)")
    parser.add_argument("--write", action="store_true", help="allow the page to add, change and delete")
    parser.add_argument("--no-browser", action="store_true", help="print the address only, and open no browser")


def run(arguments: argparse.Namespace) -> None:
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    models, layout = None, None
    if arguments.models is not None:
        name, _, layout_name = arguments.models.partition(":")
        module = _module(name)
        models, layout = models_in(module, None), layout_in(module, layout_name)
    explored = open_explored(
        arguments.location,
        models,
        layout,
        table=arguments.table,
        tenant=arguments.tenant,
        write=arguments.write,
    )
    try:
        server = ExplorerServer(explored, arguments.port)
    except BaseException:
        explored.close()
        raise
    with server:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        print(f"{arguments.location} is shown at {server.address}", flush=True)
        if not arguments.no_browser:
            webbrowser.open(server.address)
        stopped.wait()


def _module(name: str) -> ModuleType:
    """The module of this name, or the one in a file."""
    if not name.endswith(".py"):
        return imported(name)
    path = Path(name)
    if not path.is_file():
        raise NotFound(f"the file {name} does not exist; name the file with your classes")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Pydantic looks up the module of a class by its name, and a file imports what is beside it.
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except AdjoinError:
        raise
    except Exception as error:
        raise InvalidModel(f"the file {name} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    return module


COMMAND = Command(
    "explore",
    "shows a graph and its table on a page in the browser",
    add_arguments,
    run,
    takes_file=False,
)
