"""A Lambda function that keeps the aggregates and copied fields of a graph up to date: `handler`.

The programs that read and write the table use the same classes; put them into a module that both import.
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
    """The graph on the table that the template names. Requests with retries end well before the function's timeout."""
    return Graph(f"dynamodb://{os.environ['TABLE']}?deadline=10", MODELS)


handler = lambda_handler(shop)
