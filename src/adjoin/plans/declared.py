"""The record of the forms that the items of a table have: written, read, and compared with what a graph declares.

    PK           SK                adjoin:declared
    #=RECORDS    =DECLARED#forms   {"form": 1, "layout": {…}, "classes": {"STUDENT": {"name": "Student", …}}}

The record belongs to the table, and so to all its tenants; it holds templates and names, and no values. Three things
write it:

1. A graph that creates the table, or opens an empty one, records what it declares.
2. A graph that opens a table with a record adds its classes that are not in it yet. Nothing of them is stored.
3. A migration records that something is due, and at its end that nothing is.

A table without a record was filled by another program, or by version 0.1. It is read as it is, after a look at some of
its items (`plans.undeclared`). If a graph adds an index to such a table, items in it lack the entries, and that is
recorded first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import orjson

from adjoin.dataclass import dataclass
from adjoin.errors import AccessDenied, InvalidItem, MigrationDue, TableMismatch, TableNotFound
from adjoin.late import later
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.forms import Due, FormPart, ItemForm, lacks, with_due
from adjoin.layouts.indexed_fields import is_rehearsed
from adjoin.requests import DescribeTable, Get, ItemResponse, PageResponse, Plan, Put, Scan, TableResponse
from adjoin.reserved import DECLARED
from adjoin.tables import IndexDefinition
from adjoin.values import Item

if TYPE_CHECKING:
    from adjoin.plans import undeclared
    from adjoin.plans.steps import again as trying
    from adjoin.plans.steps.again import Attempt, Done
else:
    trying = later("adjoin.plans.steps.again")
    undeclared = later("adjoin.plans.undeclared")

FORM = 1
"""The version of the form of the record."""
_VERSION = "adjoin:version"
_log = logging.getLogger("adjoin")


@dataclass(frozen=True, slots=True)
class RecordedForms:
    """What the record says."""

    forms: Mapping[str, ItemForm]
    """By the word of the class."""
    layout: Mapping[str, Any]
    item: Item | None = field(default=None, compare=False)
    """The stored item; None if it is not stored yet."""


def layout_form(layout: BoundLayout) -> dict[str, Any]:
    """What is declared about the table as a whole."""
    definition = layout.definition
    return {
        "keys": {key.name: key.type for key in definition.keys},
        "indexes": {index.name: [key.name for key in index.keys] for index in definition.indexes},
        "ttl": definition.ttl,
    }


def _parsed(item: Item) -> RecordedForms | None:
    """The record in an item; None if a later version wrote it."""
    try:
        plain = orjson.loads(item[DECLARED]["S"])
        if plain["form"] != FORM:
            _log.warning("the record of declarations has a form that this version of adjoin does not know")
            return None
        forms = {word: ItemForm.of_plain(word, each) for word, each in plain["classes"].items()}
        return RecordedForms(forms, plain["layout"], item)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidItem(
            f"the record of declarations cannot be read: {error!r}; another program has changed it, so delete the item "
            f"with the key {_key_shown(item)}, and run migrate"
        ) from None


def _key_shown(item: Item) -> str:
    return " and ".join(repr(value["S"]) for value in list(item.values())[:2] if "S" in value)


def _item(layout: BoundLayout, recorded: RecordedForms, was: Item | None) -> Item:
    plain = {
        "form": FORM,
        "layout": dict(recorded.layout),
        "classes": {word: form.plain() for word, form in recorded.forms.items()},
    }
    version = 1 if was is None else int(was[_VERSION]["N"]) + 1
    return layout.declarations_key | {DECLARED: {"S": orjson.dumps(plain).decode()}, _VERSION: {"N": str(version)}}


# --- reading -----------------------------------------------------------------------------------


def read_record(layout: BoundLayout) -> Plan[RecordedForms | None]:
    """The record; None if there is none, or if the program may not read it."""
    if layout.why_no_own_items is not None:
        return None
    response: ItemResponse
    try:
        (response,) = yield (Get(layout.table, layout.declarations_key, consistent=True),)
    except (TableNotFound, AccessDenied):
        return None
    return None if response.item is None else _parsed(response.item)


def learn(layout: BoundLayout, recorded: RecordedForms | None) -> None:
    """Tells the layout what stored items lack of what it declares."""
    if is_rehearsed():
        return
    forms = layout.forms()
    names = {word: form.name for word, form in forms.items()}
    if recorded is None:
        layout.due.doubt(undeclared.unsure_parts(layout), names)
        return
    partitions = {index.name: index.partitions[0].name for index in layout.definition.indexes}
    resorted = [
        (word, name)
        for word, form in forms.items()
        if word in recorded.forms
        for name in form.resorted(recorded.forms[word], partitions)
    ]
    layout.due.learn(lacking(forms, recorded), names, resorted)


def lacking(forms: Mapping[str, ItemForm], recorded: RecordedForms) -> dict[str, frozenset[FormPart]]:
    """What stored items lack, by the word of their class. Of a class that is not in the record, nothing is stored.

    A class that is in the record under another word has another label, and so other keys.
    """
    # A class is recognized by its name, too: under another word, its items have other keys.
    names = {form.name: word for word, form in recorded.forms.items()}
    found = {word: form.lacking(recorded.forms[word]) for word, form in forms.items() if word in recorded.forms}
    moved = [word for word, form in forms.items() if word not in found and names.get(form.name, word) not in forms]
    other: frozenset[FormPart] = frozenset({("keys", "")})
    return found | {word: other for word in moved if forms[word].name in names}


def check_due(layout: BoundLayout, check: Callable[[Due], None]) -> Plan[None]:
    """Refuses a query that may miss stored items. Before it does, it reads whether that is still so."""
    if is_rehearsed():
        return
    try:
        check(layout.due)
    # Another program may have ended the migration since this graph opened.
    except MigrationDue:
        learn(layout, (yield from read_record(layout)))
        if layout.due.unsure:
            layout.due.looked((yield from undeclared.look(layout)))
        check(layout.due)
    except TableMismatch:
        described: TableResponse
        (described,) = yield (DescribeTable(layout.table),)
        layout.due.learn_absent(name for name in layout.due.absent if described.definition.index(name) is None)
        check(layout.due)


# --- writing -----------------------------------------------------------------------------------


def open_record(layout: BoundLayout, described: TableResponse | None, *, tells: bool) -> Plan[None]:
    """Reads the record when a graph opens, adds what is new, and with `tells` logs what differs.

    `described` is the table, or None if it was just created.
    """
    if layout.why_no_own_items is not None:
        return
    recorded = yield from read_record(layout)
    renamed = [] if recorded is None else _renamed(layout, recorded)
    if (recorded is None and (described is None or (yield from _is_empty(layout, described)))) or (
        recorded is not None and _new_in(layout, recorded)
    ):
        recorded = yield from _changed(layout, _added(layout))
    learn(layout, recorded)
    if recorded is not None and tells:
        unread = unfilled(layout, recorded)
        for difference in differences_of(layout, recorded):
            if difference.is_due:
                _log.warning("%s; run migrate", difference)
            elif (difference.model, difference.name) in unread:
                _log.warning("%s; give it a default, or fill it with migrate", difference)
            else:
                _log.info("%s", difference)
        for new, former in renamed:
            _log.warning(
                "%s is new in this table, and %s has the same keys and fields and is not declared any more; if the "
                "class has only got another name, declare it with label=%r, so that its items are found",
                new.name,
                former.name,
                former.word,
            )


def _is_empty(layout: BoundLayout, described: TableResponse) -> Plan[bool]:
    """Whether a table has no items. A description may be some hours old, so it is believed only if it has some."""
    if described.item_count:
        return False
    # A graph of a tenant gets no item of others: it only learns that there is one.
    own = None if layout.tenant is None else layout.scan(None).filter
    page: PageResponse
    try:
        (page,) = yield (Scan(layout.table, filter=own, limit=1, consistent=True),)
    except AccessDenied:
        return False
    return page.scanned == 0


def _new_in(layout: BoundLayout, recorded: RecordedForms) -> list[str]:
    """The words of the classes that are not in the record, and were not under another word."""
    known = {form.name for form in recorded.forms.values()}
    return [word for word, form in layout.forms().items() if word not in recorded.forms and form.name not in known]


def _renamed(layout: BoundLayout, recorded: RecordedForms) -> list[tuple[ItemForm, ItemForm]]:
    """The classes that are new, each with one that is not declared any more and differs from it by its name only."""
    forms = layout.forms()
    left = [form for word, form in recorded.forms.items() if word not in forms]
    return [
        (forms[word], former)
        for word in _new_in(layout, recorded)
        for former in left
        if former.fields.items() <= forms[word].fields.items() and _shape(former) == _shape(forms[word])
    ]


def _shape(form: ItemForm) -> dict[str, str]:
    """The keys of a class, without its word in them."""
    return {name: text.replace(form.word, "") for name, text in form.keys.items()}


def unfilled(layout: BoundLayout, recorded: RecordedForms) -> list[tuple[str, str]]:
    """The names of classes and fields without which items cannot be read, and which older items do not have."""
    kinds = {kind.word: kind for kind in layout.schema.types}
    return [
        (form.name, name)
        for word, form in layout.forms().items()
        if word in recorded.forms
        for name in sorted(form.fields.keys() - recorded.forms[word].fields.keys())
        if name in kinds[word].fields and kinds[word].fields[name].is_required() and not kinds[word].former.get(name)
    ]


def _added(layout: BoundLayout) -> Callable[[RecordedForms | None], RecordedForms]:
    forms = layout.forms()

    def change(recorded: RecordedForms | None) -> RecordedForms:
        if recorded is None:
            return RecordedForms(forms, layout_form(layout))
        new = {word: forms[word] for word in _new_in(layout, recorded)}
        return replace(recorded, forms={**recorded.forms, **new})

    return change


def record_indexes(layout: BoundLayout, described: TableResponse, added: Iterable[IndexDefinition]) -> Plan[None]:
    """Records, before indexes are added to a table without a record, that stored items lack their entries.

    The record counts from then on, so it also has what a look at some items shows that they lack besides. A graph of a
    tenant sees no items of others, so what they may lack counts as lacking.
    """
    if layout.why_no_own_items is not None:
        return
    recorded = yield from read_record(layout)
    if recorded is not None or (yield from _is_empty(layout, described)):
        return
    names = {index.name for index in added}
    seen = (yield from undeclared.look(layout)) if layout.tenant is None else undeclared.unsure_parts(layout)

    def change(found: RecordedForms | None) -> RecordedForms:
        declared = layout.forms()
        due = {word: [*_over(layout, form, names), *seen.get(word, ())] for word, form in declared.items()}
        forms = {word: with_due(form, due[word]) for word, form in declared.items()}
        return found or RecordedForms(forms, layout_form(layout))

    yield from _changed(layout, change)


def _over(layout: BoundLayout, form: ItemForm, names: set[str]) -> list[FormPart]:
    """The parts of a form that need one of these indexes and are not attributes that items have anyway."""
    plain = {attribute: f"{{{attribute}}}" for attribute in form.fields.values()}
    found: list[FormPart] = [
        ("index", name)
        for name, entry in form.indexes.items()
        if name in names and any(plain.get(attribute) != text for attribute, text in entry.items())
    ]
    if layout.overloaded is not None and layout.overloaded.name in names:
        found += [("indexed", name) for name in form.indexed]
    return found


_Changing: TypeAlias = Callable[[RecordedForms | None], RecordedForms]


def _changed(layout: BoundLayout, change: _Changing) -> Plan[RecordedForms | None]:
    """Changes the record, unless the program may not; reads it again if another program was faster."""

    def attempt() -> Plan[Attempt[RecordedForms | None] | Done[RecordedForms | None]]:
        response: ItemResponse
        (response,) = yield (Get(layout.table, layout.declarations_key, consistent=True),)
        was = None if response.item is None else _parsed(response.item)
        # A later version wrote it, in a form that this one must not replace.
        if response.item is not None and was is None:
            return trying.Done(None)
        after = change(was)
        if after == was:
            return trying.Done(was)
        item = _item(layout, after, response.item)
        put = Put(layout.table, item, trying.same(response.item, _VERSION))
        return trying.Attempt((put,), lambda _: replace(after, item=item), trying.always_again)

    try:
        return (yield from trying.until_written(attempt))
    except (AccessDenied, TableNotFound):
        # A program that may only read goes on with what others have recorded.
        return (yield from read_record(layout))


def record_declared(layout: BoundLayout, due: Mapping[str, frozenset[FormPart]]) -> Plan[RecordedForms | None]:
    """Records the forms that this graph declares, with what stored items still lack of them."""
    forms = {word: with_due(form, due.get(word, ())) for word, form in layout.forms().items()}

    def change(recorded: RecordedForms | None) -> RecordedForms:
        names = {form.name for form in forms.values()}
        # Classes that other graphs declare stay, and those that this graph declares under another word are replaced.
        kept = {word: form for word, form in (recorded.forms if recorded else {}).items() if form.name not in names}
        return RecordedForms({**kept, **forms}, layout_form(layout), recorded.item if recorded else None)

    recorded = yield from _changed(layout, change)
    learn(layout, recorded)
    return recorded


# --- differences -------------------------------------------------------------------------------


DifferenceKind: TypeAlias = Literal[
    "class", "keys", "index", "indexed", "unique", "symmetric", "field", "aggregate", "table"
]


@dataclass(frozen=True, slots=True)
class DeclaredDifference:
    """One thing that a graph declares differently from what is recorded in the table."""

    kind: DifferenceKind
    model: str
    """The name of the class; "" for the table."""
    name: str
    """The name of the index or field; "" for the whole class."""
    message: str
    is_due: bool = False
    """Whether stored items lack something, so that queries may be refused until a migration has ended."""

    def __str__(self) -> str:
        return self.message


def differences(layout: BoundLayout) -> Plan[list[DeclaredDifference]]:
    """What this graph declares differently from what is recorded; nothing for a table without a record."""
    recorded = yield from read_record(layout)
    learn(layout, recorded)
    return [] if recorded is None else differences_of(layout, recorded)


def differences_of(layout: BoundLayout, recorded: RecordedForms) -> list[DeclaredDifference]:
    found: list[DeclaredDifference] = []
    forms = layout.forms()
    by_name = {form.name: form for form in recorded.forms.values()}
    unread = unfilled(layout, recorded)
    for word, form in forms.items():
        stored = recorded.forms.get(word)
        if stored is not None:
            found += _of_class(form, stored, unread)
        elif form.name in by_name:
            found.append(
                _difference(
                    "keys",
                    form,
                    "",
                    f"{form.name} has the label {word!r}, and stored items have {by_name[form.name].word!r}",
                    is_due=True,
                )
            )
    names = {form.name for form in forms.values()}
    found += [
        DeclaredDifference("class", form.name, "", f"{form.name} is stored, and this graph does not declare it")
        for word, form in recorded.forms.items()
        if word not in forms and form.name not in names
    ]
    ttl = recorded.layout["ttl"]
    if ttl != layout.definition.ttl:
        message = f"items expire by {layout.definition.ttl!r}, and {ttl!r} is recorded"
        found.append(DeclaredDifference("table", "", layout.definition.ttl or "", message))
    return found


def _of_class(form: ItemForm, stored: ItemForm, unread: Collection[tuple[str, str]]) -> list[DeclaredDifference]:
    lacked = form.lacking(stored)
    found = [
        _difference(kind, form, name, lacks(form.name, (kind, name)), is_due=True) for kind, name in sorted(lacked)
    ]
    gone = sorted(stored.parts().keys() - form.parts().keys())
    found += [_difference(kind, form, name, _GONE[kind].format(form.name, name)) for kind, name in gone]
    for name in sorted(form.fields.keys() | stored.fields.keys()):
        ours, theirs = form.fields.get(name), stored.fields.get(name)
        if ours == theirs or ("field", name) in lacked:
            continue
        if theirs is None:
            message = f"{form.name}.{name} is new"
            if (form.name, name) in unread:
                message += " and has no default, so stored items that lack it cannot be read"
        elif ours is None:
            message = f"{form.name}.{name} is stored, and this graph does not declare it"
        else:
            message = f"{form.name}.{name} is stored as {ours!r} now, and was as {theirs!r}"
        found.append(_difference("field", form, name, message))
    for name in sorted(form.aggregates.keys() | stored.aggregates.keys()):
        if form.aggregates.get(name) != stored.aggregates.get(name):
            field_name = name.partition(":")[0]
            message = f"{form.name}.{field_name} is an aggregate that is declared differently or not in both"
            found.append(_difference("aggregate", form, field_name, message))
    return found


_GONE = {
    "index": "{0} has entries in the index {1!r}, which this graph does not write",
    "indexed": "{0} is indexed by {1!r}, which this graph does not write",
    "unique": "{0} has claims to its {1!r}, which this graph does not make",
    "symmetric": "{0} is symmetric in the table, and not in this graph",
    "keys": "{0} has other keys",
}


def _difference(
    kind: DifferenceKind, form: ItemForm, name: str, message: str, *, is_due: bool = False
) -> DeclaredDifference:
    return DeclaredDifference(kind, form.name, name, message, is_due)
