"""A process that writes to a file until it is killed, and tells after each write that it is done.

`python -m tests.stores.sqlite.crash_writer <file> <seed> <durability>`
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import cast

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


def main(path: str, seed: str, durability: str) -> None:
    store = SQLiteStore(path, durability=cast(Durability, durability))
    for number, request in enumerate(operations(int(seed)), start=1):
        store.execute([request])
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
