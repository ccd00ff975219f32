"""Where adjoin records what it counted: ledgers, ranks, markers, and records about the whole graph.

    PK                  SK                                        what it is
    CUSTOMER#C1#=       =E#PLACED#INVOICE#I1                      what the edge added to its source, beside the edge
    INVOICE#I1#=        =E#PLACED#INVOICE#I1#CUSTOMER#C1          what the edge added to both ends, beside its target
    INVOICE#I1#=        =L#PLACED.out.far#CUSTOMER#C1#PLACED#…    the same for rules that read the far end, beside that
    CUSTOMER#C1#=       =R#9f2c…#VfkX…#p503.120#1c9e…             one value in order, for a least or greatest one
    CUSTOMER#C1#=       =M                                        somebody has edges here while the node is not
    INVOICE#I1#=        =A#PLACED#CUSTOMER#C1#PLACED#INVOICE#I1   an edge that arrives at the node
    #=MAINTAIN          =position                                 how far the change stream was applied

No satellite has such a sort key, because no field's name begins with "=".
"""

from __future__ import annotations

import hashlib

from adjoin.errors import InvalidKey
from adjoin.layouts.adjacency_keys import AdjacencyKeys
from adjoin.layouts.keys import SEPARATOR
from adjoin.layouts.overloaded import indexed_text
from adjoin.requests import SortCondition
from adjoin.units import MAX_SORT_KEY_SIZE
from adjoin.values import AttributeValue, Item, decode

MARK = "="
_BESIDE = SEPARATOR + MARK
_EDGE = "E#"
SHORT = "~"
"""What the end of a key begins with that was too long, and is a digest."""
_RANKED = ("S", "N", "BOOL")
TOKEN_LENGTH = 8
"""Characters of the token that ends the key of a rank."""
_EDGE_LENGTH = 8
RANK_END = 1 + _EDGE_LENGTH + TOKEN_LENGTH
"""Characters of the key of a rank behind its value."""
UNTOLD_END = 1 + 20
"""The same where it was put without a token, by earlier versions."""
LONGEST_RANK = 600
"""Bytes of a value that has a rank; a life, a rule and an edge stand in the same key."""


class Ledgers:
    """The keys of what was counted, in one layout."""

    def __init__(self, keys: AdjacencyKeys) -> None:
        layout = keys.layout
        self._pk, self._sk = layout.partition_key, layout.sort_key
        self._prefix, self._sort_prefix = keys.prefix, keys.tenant_part(layout.sort_key)

    def ledger_key(self, edge: Item, target: str | None) -> Item:
        """Where the ledger of an edge is: beside the edge, or beside the target with that partition key."""
        partition, sort = edge[self._pk]["S"], edge[self._sk]["S"]
        if target is None:
            return self._key(partition, _EDGE, sort)
        return self._key(target, _EDGE, f"{sort}#{partition}")

    def edge_key(self, ledger: Item, length: int | None) -> Item:
        """The key of the edge of a ledger, whose key has not been shortened.

        `length` is that of the edge's partition key, where the ledger lies beside the target.
        """
        text = ledger[self._sk]["S"].removeprefix(self.edge_start)
        if length is None:
            return {self._pk: {"S": ledger[self._pk]["S"].removesuffix(_BESIDE)}, self._sk: {"S": text}}
        return {self._pk: {"S": text[-length:]}, self._sk: {"S": text[: -length - 1]}}

    def node_beside(self, item: Item) -> str:
        """The partition key of the node that an item lies beside."""
        text: str = item[self._pk]["S"]
        return text.removesuffix(_BESIDE)

    @property
    def edge_start(self) -> str:
        """What the sort keys of ledgers of edges begin with."""
        return self._sort_prefix + MARK + _EDGE

    def edge_ledgers(self, node: str, start: str) -> tuple[tuple[str, AttributeValue], SortCondition]:
        """The partition and stretch of ledgers beside a node, of edges whose sort keys begin with `start`."""
        return self._stretch(node, _EDGE + start)

    def far_ledger_key(self, account: str, edge: Item, far: str) -> Item:
        """Where the ledger of an edge is for rules that read its far end: beside the node with that partition key."""
        return self._key(far, f"L#{account}#", f"{edge[self._pk]['S']}#{edge[self._sk]['S']}")

    def ledgers(self, account: str, far: str) -> tuple[tuple[str, AttributeValue], SortCondition]:
        """The partition and stretch of all ledgers of an account beside a far node."""
        return self._stretch(far, f"L#{account}#")

    def rank_key(self, node: str, life: str, rule: str, rank: str, edge: Item, token: str) -> Item:
        """Where a value of a rule stands among the others of a node; of one edge, and nobody else has the token."""
        return self._key(node, f"R#{life}#{rule}#{rank}#", digest_of(edge)[:_EDGE_LENGTH] + token)

    def untold_rank_key(self, node: str, life: str, rule: str, rank: str, edge: Item, number: int) -> Item:
        """Where earlier versions put it: the value of that number of an edge."""
        digest = hashlib.sha256(f"{edge[self._pk]['S']}\0{edge[self._sk]['S']}\0{number}".encode()).hexdigest()[:20]
        return self._key(node, f"R#{life}#{rule}#{rank}#", digest)

    def token_of_rank(self, rank: Item) -> str:
        """The token that the key of a rank ends with."""
        text: str = rank[self._sk]["S"]
        return text[-TOKEN_LENGTH:]

    def ranks(self, node: str, life: str, rule: str) -> tuple[tuple[str, AttributeValue], SortCondition]:
        return self._stretch(node, f"R#{life}#{rule}#")

    def all_ranks(self, node: str) -> tuple[tuple[str, AttributeValue], SortCondition]:
        """The partition and stretch of everything that is ranked for a node, in all its lives."""
        return self._stretch(node, "R#")

    def life_of_rank(self, rank: Item) -> str:
        """The life of its node that a rank is of."""
        text: str = rank[self._sk]["S"].removeprefix(self._sort_prefix + MARK + "R#")
        return text.partition(SEPARATOR)[0]

    def marker_key(self, node: str) -> Item:
        return self._key(node, "M", "")

    def arrival_key(self, label: str, node: str, edge: Item) -> Item:
        """Where it is taken down that an edge of a class arrives at a node."""
        return self._key(node, f"A#{label}#", f"{edge[self._pk]['S']}#{edge[self._sk]['S']}")

    def arrivals(self, label: str, node: str) -> tuple[tuple[str, AttributeValue], SortCondition]:
        """The partition and stretch of everything that is known to arrive at a node by edges of a class."""
        return self._stretch(node, f"A#{label}#")

    def record_key(self, what: str, name: str) -> Item:
        """Where something about the whole graph is recorded; all records of a sort are in one partition."""
        sort = self._sort_prefix + MARK + name
        return {self._pk: {"S": f"{self._prefix}{_BESIDE}{what}"}, self._sk: {"S": sort}}

    def records(self, what: str, prefix: str = "") -> tuple[tuple[str, AttributeValue], SortCondition]:
        key = self.record_key(what, prefix)
        return (self._pk, key[self._pk]), SortCondition(self._sk, "begins_with", (key[self._sk],))

    def _key(self, node: str, kind: str, tail: str) -> Item:
        sort = self._sort_prefix + MARK + kind
        if len(sort.encode()) + len(tail.encode()) > MAX_SORT_KEY_SIZE:
            tail = SHORT + hashlib.sha256(tail.encode()).hexdigest()
        return {self._pk: {"S": node + _BESIDE}, self._sk: {"S": sort + tail}}

    def _stretch(self, node: str, kind: str) -> tuple[tuple[str, AttributeValue], SortCondition]:
        start = {"S": self._sort_prefix + MARK + kind}
        return (self._pk, {"S": node + _BESIDE}), SortCondition(self._sk, "begins_with", (start,))


def digest_of(key: Item) -> str:
    """A short name for an item, by its key."""
    return hashlib.sha256("\0".join(part["S"] for part in key.values()).encode()).hexdigest()[:32]


def rank_text(*values: AttributeValue) -> str:
    """A spelling of stored values whose text order is their order, the first one's first."""
    return SEPARATOR.join(_rank_text(value) for value in values)


def _rank_text(value: AttributeValue) -> str:
    ((tag, stored),) = value.items()
    if tag not in _RANKED:
        raise InvalidKey(f"a stored value of type {tag} has no order; take a field of text, a number, a date or a bool")
    text = indexed_text(decode(value))
    if len(text.encode()) > LONGEST_RANK:
        raise InvalidKey(f"{str(stored)[:40]!r}… is too long to be put in order; {LONGEST_RANK} bytes are the most")
    return text
