"""Processes that write to a file until they are killed, and tell after each write that it is done.

`python -m tests.stores.sqlite.crash_writer` forks one for each line from stdin: file, seed, durability and the pipe in
which it is told, as JSON. So what they need is imported once.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from typing import NoReturn, cast

from adjoin.expressions import Add, attribute
from adjoin.requests import BatchWrite, Delete, Put, Request, TransactWrite, Update
from adjoin.stores.sqlite import SQLiteStore
from adjoin.stores.sqlite.file import Durability
from tests.stores.examples import item, key, n, s

GROUP = 4


def operations(seed: int) -> Iterator[Request]:
    """The writes of one life of the process: the same for the same seed, and without end."""
    chance = random.Random(seed)
    number = 0
    while True:
        number += 1
        stamp = n(seed * 1_000_000 + number)
        kind = chance.choice(("put", "group", "count", "delete", "batch"))
        if kind == "put":
            yield Put("Plain", item("items", str(chance.randrange(50)), at=stamp, x=s("x" * chance.randrange(2000))))
        elif kind == "group":
            group = f"group {chance.randrange(3)}"
            yield TransactWrite(tuple(Put("Plain", item(group, str(each), at=stamp)) for each in range(GROUP)))
        elif kind == "count":
            yield Update("Plain", key("counters", str(chance.randrange(3))), (Add(attribute("count"), n(1)),))
        elif kind == "delete":
            yield Delete("Plain", key("items", str(chance.randrange(50))))
        else:
            yield BatchWrite(tuple(Put("Plain", item("batch", str(each), at=stamp)) for each in range(10)))


def write(path: str, seed: int, durability: str, told: str) -> NoReturn:
    """Writes without end, and tells the number of each write that was acknowledged."""
    with open(told, "w", encoding="ascii") as line:
        store = SQLiteStore(path, durability=cast(Durability, durability))
        for number, request in enumerate(operations(seed), start=1):
            store.execute([request])
            line.write(f"{number}\n")
            line.flush()
    raise AssertionError("there is always another write")


def main() -> None:
    """Forks a writer for each line from stdin, says which process it is, and then that it has ended."""
    for line in sys.stdin:
        writer = os.fork()
        if not writer:
            write(*json.loads(line))
        print(writer, flush=True)
        os.waitpid(writer, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    main()
