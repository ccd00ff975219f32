"""`adjoin explore`: shows a graph and its table on a page in the browser, until it is stopped."""

from __future__ import annotations

import argparse
import signal
import threading
import webbrowser
from types import FrameType

from adjoin.cli.command import Command, imported, layout_in, models_in
from adjoin.cli.serve import port_number
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
        module = imported(name)
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


COMMAND = Command(
    "explore",
    "shows a graph and its table on a page in the browser",
    add_arguments,
    run,
    takes_file=False,
)
