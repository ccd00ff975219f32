"""A Lambda function that keeps the aggregates and copies of a graph true: `handler` is the whole of it.

The classes are those of the programs that read and write the table; put them into a module that both have.
"""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Annotated

from adjoin import Copy, Count, Edge, Graph, Max, Node, Sum
from adjoin.aws import lambda_handler


class Customer(Node):
    id: str
    name: str = ""
    invoices: Annotated[int, Count("Placed")] = 0
    owed: Annotated[Decimal, Sum("Placed", field="balance")] = Decimal(0)
    largest: Annotated[Decimal | None, Max("Placed", field="balance")] = None


class Invoice(Node):
    id: str


class Placed(Edge[Customer, Invoice]):
    balance: Decimal
    customer: Annotated[str, Copy("source.name")] = ""


MODELS = [Customer, Invoice, Placed]


def shop() -> Graph:
    """The table that the template names; a request with its retries ends well before the function does."""
    return Graph(f"dynamodb://{os.environ['TABLE']}?deadline=10", MODELS)


handler = lambda_handler(shop)
