"""A process that counts and moves money in a file, together with others.

`python -m tests.stores.sqlite.processes_worker <file> <number> <rounds>`
"""

from __future__ import annotations

import random
import sys

from adjoin.errors import TransactionCanceled
from adjoin.expressions import Add, Compare, Value, attribute
from adjoin.requests import TransactWrite, Update
from adjoin.stores.sqlite import SQLiteStore
from tests.stores.examples import key, n

ACCOUNTS = 6
BALANCE = 100


def transfer(source: str, target: str, amount: int) -> TransactWrite:
    enough = Compare(">=", attribute("balance"), Value(n(amount)))
    return TransactWrite(
        (
            Update("Plain", key("accounts", source), (Add(attribute("balance"), n(-amount)),), enough),
            Update("Plain", key("accounts", target), (Add(attribute("balance"), n(amount)),)),
        )
    )


def main(path: str, number: str, rounds: str) -> None:
    store = SQLiteStore(path, durability="process")
    chance = random.Random(int(number))
    for _ in range(int(rounds)):
        store.execute(
            [
                Update("Plain", key("counters", "all"), (Add(attribute("count"), n(1)),)),
                Update("Plain", key("counters", number), (Add(attribute("count"), n(1)),)),
            ]
        )
        source, target = chance.sample(range(ACCOUNTS), 2)
        try:
            store.execute([transfer(str(source), str(target), chance.randrange(1, 80))])
        except TransactionCanceled as error:
            if [reason.code for reason in error.reasons] != ["ConditionalCheckFailed", "None"]:
                raise
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
