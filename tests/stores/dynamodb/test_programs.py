"""The stores in programs of their own: how they end, event loops, interrupts and forks.

Every program runs with all warnings as errors, and must end without a word on its standard error.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

from adjoin import Graph
from tests.models import Course
from tests.stores.dynamodb.misbehaving import THROTTLED, Call, Exchange, MisbehavingServer, Misbehaviour
from tests.waiting import LIMIT

ROOT = Path(__file__).resolve().parents[3]

BEGINNING = """
import asyncio, gc, os, signal, sys, threading, time
from adjoin import AsyncGraph, Graph, Node, StoreClosed

class Course(Node):
    id: str
    name: str = ""
    credits: int = 0

URL = sys.argv[1]
MATHS = Course(id=sys.argv[2], name="Maths")
"""


def run(text: str, location: str, name: str) -> str:
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", BEGINNING + text, location, name],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    # Development mode logs what keeps a loop for long, as reading files does on a busy machine.
    said = [line for line in done.stderr.splitlines() if not (line.startswith("Executing <") and " took " in line)]
    assert (done.returncode, "\n".join(said)) == (0, "")
    return done.stdout


def test_a_graph_that_is_closed(location: str, name: str) -> None:
    program = """
with Graph(URL, [Course]) as g:
    g.put(MATHS)
    print(g.get(Course, MATHS.id) == MATHS)
g.close()
try:
    g.get(Course, MATHS.id)
except StoreClosed:
    print("closed")
"""
    assert run(program, location, name) == "True\nclosed\n"


def test_graphs_that_nobody_closes(location: str, name: str) -> None:
    program = """
def forgotten():
    g = Graph(URL, [Course])
    g.put(MATHS)
    return g.get(Course, MATHS.id) == MATHS

async def where_a_loop_is_running():
    g = Graph(URL, [Course])
    with Graph(URL, [Course]) as other:
        return g.get(Course, MATHS.id) == other.get(Course, MATHS.id) == MATHS

print(forgotten())
gc.collect()
print(asyncio.run(where_a_loop_is_running()))
g = Graph(URL, [Course])
threads = [threading.Thread(target=g.get, args=(Course, MATHS.id)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(g.get(Course, MATHS.id) == MATHS)
"""
    assert run(program, location, name) == "True\n" * 3


def test_asynchronous_graphs(location: str, name: str) -> None:
    program = """
async def closed():
    async with AsyncGraph(URL, [Course]) as g:
        await g.put(MATHS)
        print(await g.get(Course, MATHS.id) == MATHS)
    await g.close()
    new = AsyncGraph(URL, [Course])
    await new.close()
    for each in (g, new):
        try:
            await each.get(Course, MATHS.id)
        except StoreClosed:
            print("closed")

async def forgotten():
    g = AsyncGraph(URL, [Course])
    await asyncio.gather(*(g.put(MATHS) for _ in range(5)))
    del g
    gc.collect()
    await asyncio.sleep(0.05)
    other = AsyncGraph(URL, [Course])
    print(await other.get(Course, MATHS.id) == MATHS)

async def ask(g):
    for _ in range(10):
        found = await asyncio.gather(*(g.get(Course, MATHS.id) for _ in range(4)))
        assert found == [MATHS] * 4

asyncio.run(closed())
asyncio.run(forgotten())
gc.collect()

one = AsyncGraph(URL, [Course])
asyncio.run(ask(one))
gc.collect()
asyncio.run(ask(one))
threads = [threading.Thread(target=lambda: asyncio.run(ask(one))) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
asyncio.run(one.close())

never_closed = AsyncGraph(URL, [Course])
asyncio.run(ask(never_closed))
print("end")
"""
    assert run(program, location, name) == "True\nclosed\nclosed\nTrue\nend\n"


async def _signal(exchange: Exchange) -> None:
    """Sends a signal to the program that asks for its own process, when it waits for the answer, and gives none."""
    if asked := re.search(r"process-(\d+)", json.dumps(exchange.call.payload)):
        await asyncio.sleep(0.05)
        os.kill(int(asked[1]), signal.SIGUSR1)
    await asyncio.sleep(60)


def test_a_graph_that_is_interrupted(location: str, server: MisbehavingServer, name: str) -> None:
    """As by the keyboard, in the middle of a call that waits for its answer; by any error of a handler of signals."""
    how = Misbehaviour("a signal", _signal)
    server.choose = lambda call: how if "process-" in json.dumps(call.payload) else None
    program = """
g = Graph(URL, [Course])
g.put(MATHS)
PROCESS = f"process-{os.getpid()}"

class Impatient(Exception):
    pass

def impatient(*_):
    raise Impatient

def interrupted(error, call):
    try:
        call()
    except error:
        print("interrupted")

for handler, error in ((signal.default_int_handler, KeyboardInterrupt), (impatient, Impatient)):
    signal.signal(signal.SIGUSR1, handler)
    interrupted(error, lambda: g.get(Course, PROCESS))
    interrupted(error, lambda: g.get_many(Course, [PROCESS, *map(str, range(300))]))
    interrupted(error, lambda: g.get(Course, PROCESS))
print(g.get(Course, MATHS.id) == MATHS)
"""
    assert run(program, location, name) == "interrupted\n" * 6 + "True\n"


def test_what_was_interrupted_does_not_go_on(
    location: str, behind: Graph, server: MisbehavingServer, name: str
) -> None:
    """A write that was waiting for its next attempt is not made by the calls that follow."""
    asked: list[str] = []

    def end() -> None:
        os.kill(int(asked[0]), signal.SIGUSR1)

    def choose(call: Call) -> Misbehaviour | None:
        if asked and call.operation == "GetItem":
            # It was interrupted. Before that, however slow the machine is, the write is refused.
            server.behave()
            return None
        found = re.search(r"process-(\d+)", json.dumps(call.payload))
        if found and not asked:
            asked.append(found[1])
            threading.Timer(0.2, end).start()
        return THROTTLED if found else None

    server.choose = choose
    program = """
g = Graph(URL, [Course])
g.put(MATHS)
signal.signal(signal.SIGUSR1, signal.default_int_handler)
try:
    g.put(Course(id=f"process-{os.getpid()}"))
except KeyboardInterrupt:
    print("interrupted")
for _ in range(10):
    time.sleep(0.1)
    assert g.get(Course, MATHS.id) == MATHS
"""
    assert run(program, location, name) == "interrupted\n"
    assert behind.get(Course, f"process-{asked[0]}") is None


def test_forks(location: str, name: str) -> None:
    """The parent goes on with its connections meanwhile and afterwards, on as many loops as it had."""
    program = """
g = Graph(URL, [Course])
g.put(MATHS)

def ask():
    for _ in range(5):
        assert g.get(Course, MATHS.id) == MATHS

def ask_from_threads():
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

def like_any_program():
    ask()
    g.put(Course(id=f"{MATHS.id}-child"))

def closes_and_collects():
    global g
    ask()
    g.close()
    del g
    gc.collect()

def never_asks():
    pass

def has_a_child():
    ask()
    child = os.fork()
    if child == 0:
        ask()
        sys.exit(0)
    ask()
    assert os.waitpid(child, 0)[1] == 0

for work in (like_any_program, closes_and_collects, never_asks, has_a_child):
    ask_from_threads()
    child = os.fork()
    if child == 0:
        work()
        sys.exit(0)
    ask()
    _, status = os.waitpid(child, 0)
    ask_from_threads()
    print(work.__name__, status, flush=True)
print(g.get(Course, f"{MATHS.id}-child") is not None)
"""
    names = ("like_any_program", "closes_and_collects", "never_asks", "has_a_child")
    assert run(program, location, name) == "".join(f"{each} 0\n" for each in names) + "True\n"
