"""Every aggregate by its definition, over all paths, in plain Python; nothing of the code under test is used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal, localcontext
from typing import Any

from tests.batch.models import Author, Book, Follows, Holds, Knows, Part, Shop, Sold, World, Wrote

CIRCULAR = object()


class BruteForce:
    def __init__(self, world: World) -> None:
        self.world = world

    def expected(self) -> dict[tuple[str, Any], Any]:
        """The value of each aggregate, by "LABEL.field" and id."""
        with localcontext() as context:
            context.prec = 300
            found: dict[tuple[str, Any], Any] = {}
            for model, values in ((Author, self.author), (Book, self.book), (Shop, self.shop), (Part, self.part)):
                for id in self.world.nodes[model]:
                    for name, value in values(id).items():
                        found[f"{model.__name__.upper()}.{name}", id] = value
            return found

    def book_of(self, edge: Wrote) -> Book | None:
        book: Book | None = self.world.nodes[Book].get(edge.target)
        return book

    def author(self, id: str) -> dict[str, Any]:
        wrote = [edge for edge in self.world.edges[Wrote] if edge.source == id]
        books = [(edge, self.book_of(edge)) for edge in wrote]
        prices = [book.price for _, book in books if book is not None and book.price is not None]
        lengths = [edge.length for edge in wrote if edge.length is not None]
        sales = [
            (edge, sale)
            for edge, book in books
            if book is not None
            for sale in self.world.edges[Sold]
            if sale.source == book.id
        ]
        amounts = [sale.amount for _, sale in sales]
        knows = [edge for edge in self.world.edges[Knows] if id in (edge.source, edge.target)]
        return {
            "books": len(wrote),
            "pages": sum(lengths, Decimal(0)),
            "worth": sum(prices, Decimal(0)),
            "dear": len([price for price in prices if price > 10]),
            "long": len(
                [e for e in wrote if e.length is not None and e.length >= Decimal("0.5") and e.role != "editor"]
            ),
            "unpaid": len([book for _, book in books if book is not None and book.price is None]),
            "least": min(lengths, default=None),
            "dearest": max(prices, default=None),
            "first_role": "editor" if any(edge.role == "editor" for edge in wrote) else None,
            "longest": sorted(lengths, reverse=True)[:2] or None,
            "longest_of": _of((e.length, e.target) for e in wrote if e.length is not None)[:2] or None,
            "best_shops": _of((sale.amount, sale.target) for _, sale in sales)[:3] or None,
            "mean_length": _mean(lengths),
            "mean_sale": _mean(amounts),
            "newest": self.latest([(edge.year, edge, edge.role) for edge in wrote]),
            "sales": sum(amounts, Decimal(0)),
            "sold_in": len({sale.target for _, sale in sales}),
            "deals": len([amount for amount in amounts if -1 <= amount <= 1]),
            "best_sales": sorted(amounts, reverse=True)[:3] or None,
            "last_note": self.last_note(books),
            "worst_sale": min(amounts, default=None),
            "friends": len(knows),
            "strength": max((edge.strength for edge in knows), default=None),
            "fans": len([edge for edge in self.world.edges[Follows] if edge.target == id]),
            "follows": len([edge for edge in self.world.edges[Follows] if edge.source == id]),
        }

    def latest(self, candidates: list[tuple[Any, Any, Any]]) -> Any:
        known = [each for each in candidates if each[2] is not None]
        return max(known, key=lambda each: (each[0], each[2]))[2] if known else None

    def last_note(self, books: list[tuple[Wrote, Book | None]]) -> Any:
        """The latest of each book, and of those the latest."""
        found = []
        for edge, book in books:
            sales = [
                s for s in self.world.edges[Sold] if book is not None and s.source == book.id and s.note is not None
            ]
            if sales:
                last = max(sales, key=lambda sale: (sale.at, sale.note))
                found.append((last.at, edge, last.note))
        return self.latest(found)

    def sold(self, book: Book) -> Decimal:
        return sum((sale.amount for sale in self.world.edges[Sold] if sale.source == book.id), Decimal(0))

    def book(self, id: int) -> dict[str, Any]:
        writers = len([edge for edge in self.world.edges[Wrote] if edge.target == id])
        return {"writers": writers, "sold": self.sold(self.world.nodes[Book][id])}

    def shop(self, id: str) -> dict[str, Any]:
        sales = [sale for sale in self.world.edges[Sold] if sale.target == id]
        books = [self.world.nodes[Book].get(sale.source) for sale in sales]
        totals = [self.sold(book) for book in books if book is not None]
        return {
            "turnover": sum((sale.amount for sale in sales), Decimal(0)),
            "selling": len([total for total in totals if total > 1]),
            "total": sum(totals, Decimal(0)),
        }

    # --- trees ---------------------------------------------------------------------------------

    def part(self, id: int) -> dict[str, Any]:
        def cost(edge: Holds) -> Decimal | None:
            part = self.world.nodes[Part].get(edge.target)
            return None if part is None else part.cost

        down = self.descend(id, "source", "target", lambda edge: True)
        positive = self.descend(id, "source", "target", lambda edge: edge.number > 0)
        up = self.descend(id, "target", "source", lambda edge: True)
        costs = None if down is None else [c for edge in down if (c := cost(edge)) is not None]
        return {
            "total": CIRCULAR if costs is None else sum(costs, Decimal(0)),
            "pieces": CIRCULAR if down is None else len(down),
            "quantity": CIRCULAR if positive is None else sum((edge.number for edge in positive), Decimal(0)),
            "needed": CIRCULAR if down is None else self.bill(id, lambda part: Decimal(1)),
            "price": CIRCULAR if down is None else self.bill(id, lambda part: part.cost if part else Decimal(0)),
            "direct": sum(
                (edge.number * (cost(edge) or 0) for edge in self.world.edges[Holds] if edge.source == id), Decimal(0)
            ),
            "dearest": CIRCULAR if costs is None else max(costs, default=None),
            "largest": CIRCULAR if down is None else sorted((e.number for e in down), reverse=True)[:2] or None,
            "largest_of": CIRCULAR if down is None else _of((e.number, e.target) for e in down)[:3] or None,
            "mean_cost": CIRCULAR if costs is None else _mean(costs),
            "latest": CIRCULAR if down is None else (self.latest_below(id) or (None, None))[1],
            "above": CIRCULAR if up is None else len(up),
            "different": CIRCULAR if down is None else len({edge.target for edge in down}),
            "once": CIRCULAR if down is None else sum(self.once(down), Decimal(0)),
            "mean_once": CIRCULAR if down is None else _quotient(self.once(down)),
        }

    def once(self, edges: list[Holds]) -> list[Decimal]:
        """What the parts cost to which edges lead, each part once."""
        parts = (self.world.nodes[Part].get(id) for id in {edge.target for edge in edges})
        return [part.cost for part in parts if part is not None]

    def descend(self, id: int, near: str, far: str, counts: Callable[[Holds], bool]) -> list[Holds] | None:
        """Every edge below a node, once for each path to it; None if a path comes back to where it was."""
        by_near: dict[int, list[Holds]] = defaultdict(list)
        for edge in self.world.edges[Holds]:
            if counts(edge):
                by_near[getattr(edge, near)].append(edge)

        def walk(at: int, way: frozenset[int]) -> Iterator[Holds | None]:
            for edge in by_near[at]:
                yield edge
                next_id = getattr(edge, far)
                if next_id in way:
                    yield None
                elif next_id in self.world.nodes[Part]:
                    yield from walk(next_id, way | {next_id})

        found: list[Holds] = []
        for edge in walk(id, frozenset({id})):
            if edge is None:
                return None
            found.append(edge)
        return found

    def bill(self, id: int, of: Callable[[Part | None], Decimal]) -> Decimal:
        """What is below a node, for each path to it, with quantities multiplied along the path."""
        total = Decimal(0)
        for edge in self.world.edges[Holds]:
            if edge.source == id and edge.times is not None:
                part = self.world.nodes[Part].get(edge.target)
                total += edge.times * (of(part) + (Decimal(0) if part is None else self.bill(edge.target, of)))
        return total

    def latest_below(self, id: int) -> tuple[int, Decimal] | None:
        """What is latest at a node: of its edges, and of what is latest at the nodes they lead to."""
        best: tuple[int, Decimal] | None = None
        for edge in self.world.edges[Holds]:
            if edge.source != id:
                continue
            options = [(edge.year, edge.number)]
            if edge.target in self.world.nodes[Part] and (below := self.latest_below(edge.target)) is not None:
                options.append(below)
            best = max(each for each in (best, *options) if each is not None)
        return best


def _of(values: Iterable[tuple[Decimal, Any]]) -> list[list[Any]]:
    """Values with their ids, greatest first; of equal values, the one with the greater id comes first."""
    return [list(each) for each in sorted(values, reverse=True)]


def _mean(values: list[Decimal]) -> Any:
    """What a job compares for a mean: the exact sum, and the quotient with 38 digits; 0 if there is nothing."""
    if not values:
        return 0
    return {"sum": sum(values, Decimal(0)), "mean": _quotient(values)}


def _quotient(values: list[Decimal]) -> Decimal | None:
    total = sum(values, Decimal(0))
    with localcontext() as context:
        context.prec = 38
        return total / len(values) if values else None
