"""Keys of adjoin's own items: satellites of entities, and items about the aggregates of nodes.

    PK                         SK                                        what it is
    PERSON#P1#=                name##META                                an index copy of (PERSON#P1, #META)
    POST#A7#=                  tags[]#python##META                       the same for an element of the field tags
    #=PERSON#email#a@b.c       =                                         the claim of one node to a unique value
    #=BILLED_TO#source#INVOICE#I1   =                                    the claim of the only edge of a node
    CUSTOMER#C1#=              =E#PLACED#INVOICE#I1                      the ledger of an edge, beside its source
    INVOICE#I1#=               =E#PLACED#INVOICE#I1#CUSTOMER#C1          the ledger for both ends, beside its target
    INVOICE#I1#=               =L#PLACED.out.far#CUSTOMER#C1#PLACED#…    the ledger for rules that read the far node
    CUSTOMER#C1#=              =R#9f2c…#VfkX…#p503.120#1c9e…             a rank, for a least or greatest value
    CUSTOMER#C1#=              =M                                        a waiting marker: edges wait for the node
    INVOICE#I1#=               =A#PLACED#CUSTOMER#C1#PLACED#INVOICE#I1   an arrival: an edge that arrives at the node
    #=MAINTAIN                 =position                                 how far the change stream was applied
    #=RECORDS                  =SHARDS#GSI1PK                            how many shards a key attribute has

**Satellites** are written and removed together with an entity's own item. An index copy has the attributes of the
entity, so that a find needs no second request. No key of an entity begins like a claim, because the separator is never
part of a value. A key may end like that of a copy (PERSON#= is the person "="), but then it is the key of a node, and a
copy never has the key of a node. Satellites never share a sort key with the other items here, because no field name
begins with "=".

**Declarations.** If an aggregate was declared differently before, it matters for which declaration a node was counted.
A node that was counted for a later declaration names it in the attribute `adjoin:counted`, which maps rules to keys of
declarations. So every program that reads or changes the node knows it, whatever other programs declared or counted
meanwhile. Rules whose declaration never changed are not listed, and cost nothing. A node that is created while a
rebuild runs may have edges that are not counted yet. Its keys end with a question mark, and count as valid when the
rebuild has ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import InvalidKey, InvalidModel, InvalidValue
from adjoin.layouts.indexed_fields import ELEMENTS, IndexedField, OverloadedIndex, indexed_text
from adjoin.layouts.interface import DELETING, OWNER, STAMP, TWIN, Satellite, Shape
from adjoin.layouts.key_values import check_length, sortable_number
from adjoin.layouts.keys import SEPARATOR
from adjoin.layouts.templates import AdjacencyKeys
from adjoin.requests import SortCondition
from adjoin.reserved import MARK, OWN, RECORDS
from adjoin.rules import Rule, Rules
from adjoin.units import MAX_PARTITION_KEY_SIZE, MAX_SORT_KEY_SIZE
from adjoin.values import AttributeValue, Item, canonical_number, decode, item_size, text_size

# --- satellites --------------------------------------------------------------------------------


MAX_ELEMENTS = 40
"""How many different elements an entity may have in its index, so that all of them can be replaced at once."""


class Satellites:
    """The satellites of the entities of one layout."""

    def __init__(self, keys: AdjacencyKeys, index: OverloadedIndex | None) -> None:
        layout = keys.layout
        self._pk, self._sk, self._index = layout.partition_key, layout.sort_key or "", index
        self._prefix, self._sort_prefix = keys.prefix, keys.tenant_part(self._sk)
        self._own = keys.prefix + OWN
        self._keys = keys
        owners = {model: node.partition for model, node in keys.nodes.items()}
        owners |= {model: edge.partition for model, edge in keys.edges.items() if edge.is_apart}
        self._owners = [partition for model, partition in owners.items() if model not in keys.guarded]
        self._taken = frozenset((keys.attributes - {layout.type_attribute, DELETING}) | {STAMP, TWIN})
        """Attributes that only the entity's own item has, and index copies do not."""

    def is_at(self, partition: str) -> bool:
        """Whether what has this partition key is an item of adjoin's own."""
        return partition.startswith(self._own) or (partition.endswith(OWN) and self._is_copy(partition))

    def _is_copy(self, partition: str) -> bool:
        if not partition.endswith(OWN):
            return False
        for owner in self._owners:  # noqa: SIM110 - a generator takes twice as long; every change comes through here
            if owner.match(partition) is not None:
                return False
        return True

    def restored(self, item: Item) -> Item:
        """The item that an index copy repeats, rebuilt from the copy; any other item unchanged."""
        if not self._keys.table.are_text:
            return item
        partition = item[self._pk]["S"]
        if not self._is_copy(partition):
            return item
        name, _, sort = item[self._sk]["S"].removeprefix(self._sort_prefix).partition(SEPARATOR)
        if name.endswith(ELEMENTS):
            sort = sort.partition(SEPARATOR)[2]
        return item | {self._pk: {"S": partition.removesuffix(OWN)}, self._sk: {"S": sort}}

    def copied_fields(self, kind: EntityType) -> tuple[IndexedField, ...]:
        return (
            ()
            if self._index is None
            else tuple(each for each in self._index.fields(kind) if not (each.is_own or each.has_elements))
        )

    def _element_fields(self, kind: EntityType) -> tuple[IndexedField, ...]:
        return () if self._index is None else tuple(each for each in self._index.fields(kind) if each.has_elements)

    def _elements(self, kind: EntityType, item: Item, values: Mapping[str, Any]) -> list[Satellite]:
        """The index copies of an entity's item for the elements of its fields, each element once."""
        texts = [(field, field.texts(values[field.name])) for field in self._element_fields(kind)]
        if (number := sum(len(some) for _, some in texts)) > MAX_ELEMENTS:
            names = " and ".join(field.name for field, _ in texts)
            raise InvalidValue(
                f"a {kind.name} has {number} different elements in {names}; each is an item of the index, and they are "
                f"all written in one transaction, so store at most {MAX_ELEMENTS}"
            )
        return [
            Satellite(self._copy_key(field, item, text), self._copy(field, item, element, text))
            for field, some in texts
            for text, element in some.items()
        ]

    def element_keys(self, kind: EntityType, item: Item) -> list[Item]:
        """The keys of the index copies for the elements of a stored item, which need not be valid."""
        found = []
        for field in self._element_fields(kind):
            stored = _stored(kind, field.name, item)
            if stored is not None:
                with suppress(InvalidKey, InvalidValue, TypeError):
                    value = self._keys.nodes[kind.model].record.decode_field(field.name, stored)
                    found += [self._copy_key(field, item, text) for text in field.texts(value)]
        return found

    def copy_keys(self, kind: EntityType, key: Item) -> list[Item]:
        return [self._copy_key(field, key) for field in self.copied_fields(kind)]

    def of(self, kind: EntityType, item: Item, values: Mapping[str, Any]) -> list[Satellite]:
        """The satellites of an entity's item with these values, also those that must not exist."""
        satellites = self.copies(kind, item, values)
        owner = self.owner(kind, item)
        if isinstance(kind, EdgeType):
            claims = self.end_claims(kind, {name: self._node_text(kind, name, values[name]) for name in kind.claimed})
        else:
            claims = [self.claim_key(kind, name, values[name]) for name in kind.unique if values[name] is not None]
        more = {OWNER: {"S": owner}, **_expiry(kind, item)}
        return [*satellites, *(Satellite(key, key | more, owner) for key in claims)]

    def _node_text(self, kind: EdgeType, side: str, id: Any) -> str:
        node, id = (kind.source if side == "source" else kind.target).of(id)
        return self._keys.nodes[node.model].text.render(node.part_values(id))

    def end_claims(self, kind: EdgeType, nodes: Mapping[str, str]) -> list[Item]:
        """The keys of the claims to nodes at the ends of an edge, given by end as node keys."""
        # A symmetric edge has no direction, so it claims both its nodes in the same way, and one from a node to itself
        # claims that once.
        ends = dict.fromkeys(("end" if kind.symmetric else side, text) for side, text in nodes.items())
        return [self._claim_key(kind, *end) for end in ends]

    def copies(self, kind: EntityType, item: Item, values: Mapping[str, Any]) -> list[Satellite]:
        """The index copies of an entity's item with these values, also those that must not exist."""
        found = []
        for field in self.copied_fields(kind):
            value = values[field.name]
            copy = None if value is None else self._copy(field, item, value)
            found.append(Satellite(self._copy_key(field, item), copy))
        return found + self._elements(kind, item, values) if kind.elements else found

    def _copy_key(self, field: IndexedField, item: Item, element: str | None = None) -> Item:
        """The key of an index copy; for one of an element, `element` is its text."""
        partition = item[self._pk]["S"] + OWN
        name = field.word if element is None else f"{field.word}{SEPARATOR}{element}"
        sort = f"{self._sort_prefix}{name}{SEPARATOR}{item[self._sk]['S']}"
        what = f"the copy of a {field.kind.name} for the index of its {field.name!r}"
        check_length(partition, MAX_PARTITION_KEY_SIZE, what, "a shorter id")
        check_length(sort, MAX_SORT_KEY_SIZE, what, "a shorter id")
        return {self._pk: {"S": partition}, self._sk: {"S": sort}}

    def _copy(self, field: IndexedField, item: Item, value: Any, element: str | None = None) -> Item:
        assert self._index is not None
        kept = {name: attribute for name, attribute in item.items() if name not in self._taken}
        copy = self._copy_key(field, item, element) | kept
        return copy | self._index.entry(field, value, self.tail(field.kind, item), item_size(copy))

    def tail(self, kind: EntityType, item: Item) -> str:
        """The end of an index entry's sort key, which no other entry has: the key of the item without the tenant."""
        partition, sort = self._keys.table.texts(item)
        partition = partition.removeprefix(self._prefix)
        is_whole = isinstance(kind, NodeType) and not self._keys.nodes[kind.model].rest
        return partition if is_whole else f"{partition}{SEPARATOR}{sort}"

    def owner(self, kind: EntityType, item: Item) -> str:
        """How a claim names its owner: the node key of a node; both keys of an edge, after the length of the first."""
        partition, sort = self._keys.table.texts(item)
        if isinstance(kind, NodeType):
            return self._keys.nodes[kind.model].text_in(partition, sort)
        return f"{len(partition)}:{partition}{sort}"

    def owned_by(self, owner: str) -> Item | None:
        """The key of the edge that a claim names; None if another program wrote the claim."""
        length, _, keys = owner.partition(":")
        if not length.isdecimal() or not 0 < int(length) < len(keys):
            return None
        return {self._pk: {"S": keys[: int(length)]}, self._sk: {"S": keys[int(length) :]}}

    # --- for people and tools ------------------------------------------------------------------

    def shaped(self, kind: EntityType, shape: Shape) -> Shape:
        """The shape of an item with its index entry, and with the shapes of its satellites."""
        # Only texts are made of it, so that the types do not matter.
        spelled: Item = {name: {"S": text} for name, text in shape.written.items()}
        entries = {} if self._index is None else self._index.shapes(kind, self.tail(kind, spelled))
        kept = {name: text for name, text in shape.written.items() if name not in self._taken}
        copies = {
            each.word: Shape(
                _texts(self._copy_key(each, spelled, element)) | kept | entries.pop(each.word), shape.fields
            )
            for fields, element in ((self.copied_fields(kind), None), (self._element_fields(kind), "{element}"))
            for each in fields
        }
        owner = {OWNER: self.owner(kind, spelled)}
        claims = {name: Shape(_texts(self._claim_key(kind, name, f"{{{name}}}")) | owner, {}) for name in kind.claimed}
        own = next(iter(entries.values()), {})
        return Shape({**shape.written, **own}, shape.fields, copies, claims)

    # --- keys ----------------------------------------------------------------------------------

    def record_key(self, what: str, name: str) -> Item:
        """The key of a record about the whole graph; all records of one kind are in one partition."""
        return {
            self._pk: {"S": f"{self._prefix}{OWN}{what}"},
            self._sk: {"S": f"{self._sort_prefix}{MARK}{name}"},
        }

    def table_record_key(self, what: str, name: str) -> Item:
        """The key of a record about the table, which is the same for all tenants; all of them are in one partition."""
        return {self._pk: {"S": f"{OWN}{RECORDS}"}, self._sk: {"S": f"{MARK}{what}{SEPARATOR}{name}"}}

    def claim_key(self, kind: EntityType, name: str, value: Any) -> Item:
        """The key of the claim to a value of a unique field."""
        return self._claim_key(kind, name, indexed_text(kind.coerced(name, value)))

    def _claim_key(self, kind: EntityType, name: str, spelled: str) -> Item:
        partition = self._prefix + OWN + SEPARATOR.join((kind.label, name, spelled))
        check_length(partition, MAX_PARTITION_KEY_SIZE, f"the claim to {kind.name}.{name}", "a shorter value")
        return {self._pk: {"S": partition}, self._sk: {"S": self._sort_prefix + MARK}}

    def claim_start(self, kind: EntityType) -> str:
        """What the partition keys of all claims of a class begin with."""
        return f"{self._prefix}{OWN}{kind.label}{SEPARATOR}"

    def claimed_label(self, claim: Item) -> str:
        """The label of the class that a claim is for."""
        text: str = claim[self._pk]["S"].removeprefix(self._prefix).removeprefix(OWN)
        return text.partition(SEPARATOR)[0]

    def claimed_field(self, claim: Item) -> str:
        """The unique field, or the end of an edge, that a claim is for."""
        text: str = claim[self._pk]["S"].removeprefix(self._prefix).removeprefix(OWN)
        return text.partition(SEPARATOR)[2].partition(SEPARATOR)[0]

    def beside(self, kind: EntityType, item: Item, there: Collection[str] = ()) -> list[Satellite]:
        """The satellites to remove with a stored item, derived from its attributes, because it need not be valid.

        `there` are further fields that have a value, although the item may lack them: managed fields with defaults.
        """
        gone = [
            Satellite(self._copy_key(field, item), None)
            for field in self.copied_fields(kind)
            if field.name in there or _is_there(_stored(kind, field.name, item))
        ]
        gone += [Satellite(key, None) for key in self.element_keys(kind, item)]
        owner = self.owner(kind, item)
        for name in kind.unique:
            stored = _stored(kind, name, item)
            if stored is not None and _is_there(stored):
                value = self._keys.nodes[kind.model].record.decode_field(name, stored)
                gone.append(Satellite(self.claim_key(kind, name, value), None, owner))
        return gone


def _texts(key: Item) -> dict[str, str]:
    return {name: value["S"] for name, value in key.items()}


def _expiry(kind: EntityType, item: Item) -> Item:
    stored = kind.attributes[kind.expires] if kind.expires else ""
    return {stored: item[stored]} if stored in item else {}


def _stored(kind: EntityType, name: str, item: Item) -> AttributeValue | None:
    """The stored value of a field, which may be under a former name."""
    names = (kind.attributes[name], *kind.former.get(name, ()))
    return next((item[each] for each in names if each in item), None)


def _is_there(stored: AttributeValue | None) -> bool:
    return stored is not None and "NULL" not in stored


# --- ledgers, ranks, markers and records -------------------------------------------------------


_BESIDE = SEPARATOR + MARK
_EDGE = "E#"
SHORT = "~"
"""Begins the end of a key that was too long and was replaced by a digest."""
_RANKED = ("S", "N", "BOOL")
TOKEN_LENGTH = 8
"""Length of the token that ends the key of a rank."""
_EDGE_LENGTH = 8
RANK_END = 1 + _EDGE_LENGTH + TOKEN_LENGTH
"""Length of the key of a rank after its value."""
UNTOLD_END = 1 + 20
"""The same for ranks of earlier versions, which have no token."""
LONGEST_RANK = 600
"""Most bytes of a value that has a rank; the key also has room for a generation, a rule and an edge."""


class Ledgers:
    """The keys of ledgers, ranks, markers, arrivals and records in one layout."""

    def __init__(self, keys: AdjacencyKeys) -> None:
        layout = keys.layout
        self._why_not = keys.table.why_no_own_items
        self._pk, self._sk = layout.partition_key, layout.sort_key or ""
        self._prefix, self._sort_prefix = keys.prefix, keys.tenant_part(self._sk)

    def ledger_key(self, edge: Item, target: str | None) -> Item:
        """The key of an edge's ledger: beside the edge, or beside the target with that node key."""
        partition, sort = edge[self._pk]["S"], edge[self._sk]["S"]
        if target is None:
            return self._key(partition, _EDGE, sort)
        return self._key(target, _EDGE, f"{sort}#{partition}")

    def edge_key(self, ledger: Item, length: int | None) -> Item:
        """The key of the edge of a ledger whose own key was not shortened.

        `length` is the length of the edge's partition key, if the ledger is beside the target.
        """
        text = ledger[self._sk]["S"].removeprefix(self.edge_start)
        if length is None:
            return {self._pk: {"S": ledger[self._pk]["S"].removesuffix(_BESIDE)}, self._sk: {"S": text}}
        return {self._pk: {"S": text[-length:]}, self._sk: {"S": text[: -length - 1]}}

    def node_beside(self, item: Item) -> str:
        """The key of the node beside which an item is stored."""
        text: str = item[self._pk]["S"]
        return text.removesuffix(_BESIDE)

    @property
    def edge_start(self) -> str:
        """The prefix of the sort keys of edge ledgers."""
        return self._sort_prefix + MARK + _EDGE

    def edge_ledgers(self, node: str, start: str) -> tuple[tuple[str, AttributeValue], SortCondition]:
        """The partition and sort condition of ledgers beside a node, of edges whose sort keys begin with `start`."""
        return self._stretch(node, _EDGE + start)

    def far_ledger_key(self, group: str, edge: Item, far: str) -> Item:
        """The key of an edge's ledger for rules that read its far node: beside the node with the key `far`."""
        return self._key(far, f"L#{group}#", f"{edge[self._pk]['S']}#{edge[self._sk]['S']}")

    def ledgers(self, group: str, far: str) -> tuple[tuple[str, AttributeValue], SortCondition]:
        """The partition and sort condition of all ledgers of a rule group beside a far node."""
        return self._stretch(far, f"L#{group}#")

    def rank_key(self, node: str, generation: str, rule: str, rank: str, edge: Item, token: str) -> Item:
        """The key of a rank: one value of a rule for a node, from one edge, with a token that no other rank has."""
        return self._key(node, f"R#{generation}#{rule}#{rank}#", digest_of(edge)[:_EDGE_LENGTH] + token)

    def untold_rank_key(self, node: str, generation: str, rule: str, rank: str, edge: Item, number: int) -> Item:
        """The key of a rank of earlier versions: an edge's value with that number."""
        digest = hashlib.sha256(f"{edge[self._pk]['S']}\0{edge[self._sk]['S']}\0{number}".encode()).hexdigest()[:20]
        return self._key(node, f"R#{generation}#{rule}#{rank}#", digest)

    def token_of_rank(self, rank: Item) -> str:
        """The token that the key of a rank ends with."""
        text: str = rank[self._sk]["S"]
        return text[-TOKEN_LENGTH:]

    def ranks(self, node: str, generation: str, rule: str) -> tuple[tuple[str, AttributeValue], SortCondition]:
        return self._stretch(node, f"R#{generation}#{rule}#")

    def all_ranks(self, node: str) -> tuple[tuple[str, AttributeValue], SortCondition]:
        """The partition and sort condition of all ranks of a node, in all its generations."""
        return self._stretch(node, "R#")

    def generation_of_rank(self, rank: Item) -> str:
        """The generation of the node to which a rank belongs."""
        text: str = rank[self._sk]["S"].removeprefix(self._sort_prefix + MARK + "R#")
        return text.partition(SEPARATOR)[0]

    def marker_key(self, node: str) -> Item:
        return self._key(node, "M", "")

    def arrival_key(self, label: str, node: str, edge: Item) -> Item:
        """The key of the arrival of an edge of a class at a node."""
        return self._key(node, f"A#{label}#", f"{edge[self._pk]['S']}#{edge[self._sk]['S']}")

    def arrivals(self, label: str, node: str) -> tuple[tuple[str, AttributeValue], SortCondition]:
        """The partition and sort condition of all arrivals of edges of a class at a node."""
        return self._stretch(node, f"A#{label}#")

    def record_key(self, what: str, name: str) -> Item:
        """The key of a record about the whole graph; all records of one kind are in one partition."""
        if self._why_not is not None:
            raise InvalidModel(
                f"adjoin keeps records of maintenance and rebuilds in items of its own, which this table cannot hold: "
                f"{self._why_not}; no class that it can hold needs either"
            )
        sort = self._sort_prefix + MARK + name
        return {self._pk: {"S": f"{self._prefix}{_BESIDE}{what}"}, self._sk: {"S": sort}}

    def records(self, what: str, prefix: str = "") -> tuple[tuple[str, AttributeValue], SortCondition]:
        key = self.record_key(what, prefix)
        return (self._pk, key[self._pk]), SortCondition(self._sk, "begins_with", (key[self._sk],))

    def _key(self, node: str, kind: str, tail: str) -> Item:
        sort = self._sort_prefix + MARK + kind
        if text_size(sort) + text_size(tail) > MAX_SORT_KEY_SIZE:
            tail = SHORT + hashlib.sha256(tail.encode()).hexdigest()
        return {self._pk: {"S": node + _BESIDE}, self._sk: {"S": sort + tail}}

    def _stretch(self, node: str, kind: str) -> tuple[tuple[str, AttributeValue], SortCondition]:
        start = {"S": self._sort_prefix + MARK + kind}
        return (self._pk, {"S": node + _BESIDE}), SortCondition(self._sk, "begins_with", (start,))


def digest_of(key: Item) -> str:
    """A short name for an item, by its key."""
    return hashlib.sha256("\0".join([part["S"] for part in key.values()]).encode()).hexdigest()[:32]


def rank_text(*values: AttributeValue) -> str:
    """A spelling of stored values whose text order is their order; the first value counts most.

    A value with the id of its node is a pair of both.
    """
    single = [each for value in values for each in (value["L"] if len(value.get("L", ())) == 2 else (value,))]
    return SEPARATOR.join([_rank_text(value) for value in single])


def _rank_text(value: AttributeValue) -> str:
    ((tag, stored),) = value.items()
    if tag not in _RANKED:
        raise InvalidKey(f"a stored value of type {tag} has no order; use a field of text, a number, a date or a bool")
    if tag == "N":
        # Stored numbers are short, and have no character that is quoted.
        return sortable_number(canonical_number(stored))
    text = indexed_text(decode(value))
    if len(text.encode()) > LONGEST_RANK:
        raise InvalidKey(f"{str(stored)[:40]!r}… is too long to be put in order; use at most {LONGEST_RANK} bytes")
    return text


# --- which declaration a node was counted for --------------------------------------------------


COUNTED = "adjoin:counted"
_UNSURE = "?"
_NONE: frozenset[str] = frozenset()


def is_of(rules: Rules, rule: Rule, item: Item) -> bool:
    """Whether the value of a rule on a node was, or is being, counted for the rule's present declaration."""
    key = _keys(item).get(rule.name)
    return rule.name not in rules.standing.listed if key is None else key["S"].removesuffix(_UNSURE) == rule.key


def foreign_on(rules: Rules, some: Iterable[Rule], item: Item) -> frozenset[str]:
    """The names of the rules whose values on a node were counted for other declarations."""
    if COUNTED not in item and not rules.standing.listed:
        return _NONE
    return frozenset(rule.name for rule in some if not is_of(rules, rule, item))


def keys_on(item: Item) -> set[str] | None:
    """The keys of declarations that a node names; None if it names none."""
    return {key["S"].removesuffix(_UNSURE) for key in _keys(item).values()} if COUNTED in item else None


def at_birth(rules: Rules, kind: NodeType) -> AttributeValue | None:
    """The value of `adjoin:counted` for a node that begins to count; None for no attribute."""
    unfinished = rules.standing.unfinished
    keys = {name: f"{key}{_UNSURE}" if name in unfinished else key for name, key in _listed(rules, kind).items()}
    return {"M": {name: {"S": key} for name, key in keys.items()}} if keys else None


def when_counted(rules: Rules, kind: NodeType) -> AttributeValue | None:
    """The value of `adjoin:counted` for a node that was counted completely; None for no attribute."""
    keys = _listed(rules, kind)
    return {"M": {name: {"S": key} for name, key in keys.items()}} if keys else None


def believed(rules: Rules, kind: EntityType, item: Item) -> Item:
    """A node's item without aggregates that are not, or not yet, counted for the present declarations."""
    standing = rules.standing
    if COUNTED not in item and not standing.due and not standing.listed:
        return item
    void = {
        rule.attribute for rule in rules.declared if rule.node is kind.whole and not _is_believed(rules, rule, item)
    }
    void |= {mean.attribute for mean in rules.means if mean.node is kind.whole and mean.total.attribute in void}
    void |= {rule.shown_attribute for rule in rules.shown_sets if rule.node is kind.whole and rule.attribute in void}
    return {name: value for name, value in item.items() if name not in void}


def _is_believed(rules: Rules, rule: Rule, item: Item) -> bool:
    standing, key = rules.standing, _keys(item).get(rule.name)
    if key is None:
        return rule.name not in standing.due and rule.name not in standing.listed
    if key["S"].endswith(_UNSURE) and (rule.name in standing.due or rule.name in standing.unfinished):
        return False
    return bool(key["S"].removesuffix(_UNSURE) == rule.key)


def _listed(rules: Rules, kind: NodeType) -> dict[str, str]:
    listed = rules.standing.listed
    return {rule.name: rule.key for rule in rules.rules if rule.node is kind.whole and rule.name in listed}


def _keys(item: Item) -> dict[str, AttributeValue]:
    if COUNTED not in item:
        return {}
    # Another program may have written something else there.
    return {name: key for name, key in item[COUNTED].get("M", {}).items() if "S" in key}
