"""The loop: infer, check, and change what does not hold, until every class that is left writes its items unchanged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError
from adjoin.inferring.checking import Findings, confirmed, is_own, tried
from adjoin.inferring.classes import Draft, Drafting
from adjoin.inferring.grouping import Group, KeyShape, grouped
from adjoin.inferring.hints import TEXT, Hint
from adjoin.inferring.own_layouts import program_of
from adjoin.inferring.patterns import Pattern, patterns_of
from adjoin.inferring.program import ModelSpec, Program
from adjoin.inferring.roles import NODE, Roles
from adjoin.inferring.source import source_of
from adjoin.tables import IndexDefinition, TableDefinition
from adjoin.values import Item

_TRIED = 60
"""How many items of each group are tried while roles are chosen; all are tried at the end."""
_ROUNDS = 12
_MOST_LEFTOVERS = 0.1
"""The share of items with which keys without labels are what somebody left behind, and no class."""


@dataclass(frozen=True)
class Inferred:
    """A written program, and how much of the items it explains."""

    source: str
    program: Program
    patterns: tuple[Pattern, ...]
    read: int
    """Items that were read, without adjoin's own."""
    explained: int
    own: int
    """Items that adjoin itself has written about others."""
    unexplained: tuple[tuple[str, int], ...]
    """Why items are not explained, and how many."""


def infer(definition: TableDefinition, items: Sequence[Item], place: str, total: int | None = None) -> Inferred:
    """The program for a table, from a sample of its items; `place` and `total` are for its docstring."""
    mine = [item for item in items if not is_own(definition, item)]
    native = program_of(definition, items)
    if native is not None:
        found = _finished(native, definition, items, mine, place, total)
        if found is not None and found.explained == len(mine):
            return found
    if not mine:
        return _nothing(definition, items, mine, [], place, total)
    return _General(definition, items, mine, place, total).inferred()


class _General:
    """The inference for tables of any design."""

    def __init__(
        self, definition: TableDefinition, items: Sequence[Item], mine: Sequence[Item], place: str, total: int | None
    ) -> None:
        self._definition, self._items, self._mine = definition, items, mine
        self._place, self._total = place, total
        self._notes: list[str] = []
        self._grouping = grouped(definition, mine)
        self._drafting = Drafting(definition, self._grouping)
        self._drafts = self._drafting.drafts()

    def inferred(self) -> Inferred:
        self._drop_those_that_cannot_be()
        self._merge_those_that_could_be_the_same()
        self._adjust(self._sample())
        self._choose_roles()
        self._adjust([(item, draft.name) for draft in self._drafts for item in draft.group.items])
        program = self._program()
        found = _finished(program, self._definition, self._items, self._mine, self._place, self._total)
        if found is None:
            # The graph refuses what the layout alone does not: nodes only, and as many classes as it takes.
            self._without_roles()
        while found is None and self._drafts:
            program = self._program()
            found = _finished(program, self._definition, self._items, self._mine, self._place, self._total)
            if found is None:
                changing = _changing(program, self._definition, self._items)
                guilty = [draft for draft in self._drafts if draft.name in changing] or self._drafts[-1:]
                for draft in guilty:
                    self._drop(draft, "a put of what was read would change them")
        return found or _nothing(self._definition, self._items, self._mine, self._notes, self._place, self._total)

    # --- programs ------------------------------------------------------------------------------

    def _program(self, drafts: Sequence[Draft] | None = None) -> Program:
        chosen = self._drafts if drafts is None else drafts
        classes = _ordered([self._drafting.spec(draft, self._drafts) for draft in chosen])
        indexes = tuple(index for index in self._definition.indexes if self._is_filled(index, classes))
        kept = {index.name for index in indexes}
        classes = [
            replace(each, indexes={name: given for name, given in each.indexes.items() if name in kept})
            for each in classes
        ]
        left = [index.name for index in self._definition.indexes if index.name not in kept]
        notes = [f"the index {name} is not declared: no class fills all its keys" for name in left]
        return Program(
            self._definition,
            tuple(classes),
            self._grouping.type_attribute,
            indexes,
            notes=(*self._notes, *notes),
        )

    def _is_filled(self, index: IndexDefinition, classes: Sequence[ModelSpec]) -> bool:
        """Whether some class has all keys of an index."""
        of_table = {key.name for key in self._definition.keys}
        for each in classes:
            stored = {spec.attribute for spec in each.fields} | of_table
            if index.name in each.indexes or {key.name for key in index.keys} <= stored:
                return True
        return False

    def _tried(self, items: Sequence[tuple[Item, str]], drafts: Sequence[Draft] | None = None) -> Findings:
        source = source_of(self._program(drafts), [], ["Tried."])
        return tried(source, self._definition, [item for item, _ in items], [name for _, name in items])

    def _sample(self) -> list[tuple[Item, str]]:
        return [(item, draft.name) for draft in self._drafts for item in draft.group.items[:_TRIED]]

    # --- classes that do not go together -------------------------------------------------------

    def _drop_those_that_cannot_be(self) -> None:
        kept = []
        for draft in self._drafts:
            refused = self._tried([], [draft]).refused
            if refused:
                # Perhaps only the type of a key does not fit, such as dates beside their own separator.
                draft.columns = self._drafting.columns_of(draft.group, as_text=True)
                refused = self._tried([], [draft]).refused
            if refused:
                self._notes.append(f"{len(draft.group.items):,} items of {draft.name} have no class: {refused}")
            else:
                kept.append(draft)
        self._drafts = kept

    def _merge_those_that_could_be_the_same(self) -> None:
        while True:
            pair = self._conflict()
            if pair is None:
                return
            one, other, why = pair
            if self._told_apart_by_numbers(one, other):
                continue
            if self._is_leftover(one) and not self._is_leftover(other):
                one, other = other, one
            merged = None if self._is_leftover(other) else _merged(one.group, other.group)
            if merged is None:
                self._notes.append(f"{len(other.group.items):,} items of {other.name} have no class: {why}")
                self._drafts = [each for each in self._drafts if each is not other]
                continue
            made = Draft(merged, one.name, NODE, self._drafting.columns_of(merged, as_text=False))
            made.notes.append(f"it has items of several kinds, whose keys cannot be told apart ({other.name})")
            self._drafts = [made if each is one else each for each in self._drafts if each is not other]

    def _told_apart_by_numbers(self, one: Draft, other: Draft) -> bool:
        """Whether classes do not conflict if parts of their keys are numbers, as in v#000001 beside v#latest."""
        for draft in (one, other):
            was = [(column.hint, column.transform) for column in draft.columns]
            for column, texts in zip(draft.columns, draft.group.columns, strict=True):
                width = len(texts[0]) if texts else 0
                are_padded = width > 1 and all(len(text) == width and re.fullmatch("[0-9]+", text) for text in texts)
                if are_padded and column.hint == TEXT and not (column.transform or column.attributes):
                    column.hint, column.transform = Hint("int"), f"0{width}"
            if was != [(column.hint, column.transform) for column in draft.columns]:
                if not self._tried([], [one, other]).refused:
                    return True
                for column, (hint, transform) in zip(draft.columns, was, strict=True):
                    column.hint, column.transform = hint, transform
        return False

    def _is_leftover(self, draft: Draft) -> bool:
        """Whether a few items have keys without any label: a class for them would take whatever else there is."""
        shapes = (draft.group.partition, draft.group.sort)
        has_label = any(isinstance(each, str) and re.search(r"\w", each) for shape in shapes for each in shape)
        return not has_label and len(draft.group.items) <= _MOST_LEFTOVERS * len(self._mine)

    def _conflict(self) -> tuple[Draft, Draft, str] | None:
        if not self._tried([]).refused:
            return None
        for at, one in enumerate(self._drafts):
            for other in self._drafts[at + 1 :]:
                refused = self._tried([], [one, other]).refused
                if refused:
                    return one, other, refused
        # No two of them conflict, so the last one goes with the others together.
        why = self._tried([]).refused
        return (self._drafts[0], self._drafts[-1], why) if len(self._drafts) > 1 else None

    # --- what is written otherwise -------------------------------------------------------------

    def _adjust(self, items: Sequence[tuple[Item, str]]) -> None:
        """Changes classes until they write these items as they are; drops a class that cannot."""
        for _ in range(_ROUNDS):
            names = {draft.name for draft in self._drafts}
            found = self._tried([each for each in items if each[1] in names])
            if found.refused:
                if not self._without_roles():
                    return
                continue
            if not found.failed:
                return
            if not self._adjusted(found):
                break
        # A class that reads some of its items right is kept: the file says how many are not explained.
        failing = Counter(name for _, name, _ in self._tried(items).failed)
        for draft in [each for each in self._drafts if failing[each.name] == len(each.group.items) > 0]:
            self._drop(draft, "it would write them otherwise than they are")

    def _without_roles(self) -> bool:
        changed = [draft for draft in self._drafts if draft.role != NODE]
        for draft in changed:
            draft.role = NODE
        return bool(changed)

    def _drop(self, draft: Draft, why: str) -> None:
        number = self._drafts.index(draft)
        # Other classes name it, and could not be written without it.
        if any(end == number for each in self._drafts for end, _ in each.role.ends):
            return
        if draft.group.items:
            self._notes.append(f"{len(draft.group.items):,} items of {draft.name} have no class: {why}")
        for each in self._drafts:
            ends = tuple((end - (end > number), columns) for end, columns in each.role.ends)
            each.role = replace(each.role, ends=ends)
        self._drafts.remove(draft)

    def _adjusted(self, found: Findings) -> bool:
        """Whether something could be changed about the classes whose items are written otherwise."""
        is_changed = False
        for draft in self._drafts:
            for name in found.changed.get(draft.name, ()):
                is_changed |= self._relaxed(draft, name)
            failed = [why for _, name, why in found.failed if name == draft.name and draft.name not in found.changed]
            if failed:
                is_changed |= self._widened(draft, failed)
        return is_changed

    def _relaxed(self, draft: Draft, attribute: str) -> bool:
        """Takes an attribute less literally: as stored, then not at all."""
        for column in draft.columns:
            if attribute in column.attributes:
                del column.attributes[attribute]
                return True
        hint = self._drafting.hint(draft, attribute)
        if hint is not None and attribute not in draft.as_text and hint.text not in ("str", "int"):
            draft.as_text.add(attribute)
            return True
        if attribute not in draft.left_out:
            draft.left_out.add(attribute)
            return True
        return False

    def _widened(self, draft: Draft, failed: Sequence[str]) -> bool:
        """Makes the types of keys and fields wider, if items could not be read."""
        is_changed = False
        for column in draft.columns:
            if column.hint.tag == "S" and (column.hint.text != "str" or column.transform):
                column.hint, column.transform, is_changed = TEXT, "", True
                column.attributes = dict.fromkeys(column.attributes, "")
        if is_changed:
            return True
        names = {name for item in draft.group.items for name in item}
        for name in sorted(names - draft.as_text):
            if any(re.search(rf"\b{re.escape(name)}\b", why) for why in failed):
                draft.as_text.add(name)
                is_changed = True
        return is_changed

    # --- roles ---------------------------------------------------------------------------------

    def _choose_roles(self) -> None:
        unseen, columns = self._drafting.unseen(self._drafts)
        self._drafts += unseen
        if unseen and self._tried([]).refused:
            self._drafts, columns = self._drafts[: -len(unseen)], {}
        roles = Roles([draft.group for draft in self._drafts], columns)
        sample = self._sample()
        best = self._tried(sample).explained
        for number, draft in enumerate(self._drafts):
            for role in roles.of(number):
                if role is NODE:
                    break
                draft.role = role
                found = self._tried(sample)
                # The most telling role comes first, and is taken if it explains no fewer items than before.
                if not found.refused and found.explained >= best:
                    best = found.explained
                    break
                draft.role = NODE
        for draft in reversed(self._drafts):
            if not draft.group.items:
                self._drop(draft, "")


def _merged(one: Group, other: Group) -> Group | None:
    """Both groups as one, with a column wherever they differ; None if their keys have different separators."""
    shapes: list[KeyShape] = []
    columns: list[list[str]] = []
    for mine, theirs in ((one.partition, other.partition), (one.sort, other.sort)):
        first, second = _pieces(mine), _pieces(theirs)
        if len(first) != len(second):
            return None
        pieces: list[str | int] = []
        for left, right in zip(first, second, strict=True):
            if left == right and isinstance(left, str):
                pieces.append(left)
                continue
            texts = [
                *([left] * len(one.items) if isinstance(left, str) else one.columns[left]),
                *([right] * len(other.items) if isinstance(right, str) else other.columns[right]),
            ]
            if texts in columns and columns.index(texts) not in pieces:
                pieces.append(columns.index(texts))
            else:
                columns.append(texts)
                pieces.append(len(columns) - 1)
        joined: list[str | int] = []
        for piece in pieces:
            if joined and isinstance(piece, str) and isinstance(joined[-1], str):
                joined[-1] += piece
            else:
                joined.append(piece)
        if any(isinstance(a, int) and isinstance(b, int) for a, b in pairwise(joined)):
            return None
        shapes.append(tuple(joined))
    word = one.word if one.word == other.word else None
    return Group(shapes[0], shapes[1], [*one.items, *other.items], columns, word)


def _pieces(shape: KeyShape) -> list[str | int]:
    """A shape with literals cut at separators."""
    found: list[str | int] = []
    for each in shape:
        if isinstance(each, int):
            found.append(each)
        else:
            found += [part for part in re.split(r"([^A-Za-z0-9_.\- ])", each) if part]
    return found


def _ordered(classes: Sequence[ModelSpec]) -> list[ModelSpec]:
    """Classes after those that they name: nodes, then children, then edges."""
    done: list[ModelSpec] = []
    left = [*classes]
    while left:
        names = {each.name for each in left}
        ready = [each for each in left if not names & {name for end in each.ends for name in re.findall(r"\w+", end)}]
        if not ready:
            return [*done, *left]
        done += ready
        left = [each for each in left if each not in ready]
    return sorted(done, key=lambda each: each.kind == "edge")


def _finished(
    program: Program,
    definition: TableDefinition,
    items: Sequence[Item],
    mine: Sequence[Item],
    place: str,
    total: int | None,
) -> Inferred | None:
    """The program as it is written: checked on all items, without patterns that do not work; None if it is refused."""
    patterns = patterns_of(program)
    source = source_of(program, patterns, ["Tried."])
    found = tried(source, definition, mine)
    if found.refused:
        return None
    failed = {_key(definition, item) for item, _, _ in found.failed}
    explained = [item for item in items if _key(definition, item) not in failed]
    try:
        checked = confirmed(source, definition, explained, patterns)
    except AdjoinError:
        return None
    if checked.others or checked.changed:
        return None
    failing = checked.failing
    left = [each for each in patterns if each.name not in failing]
    notes = tuple(
        f"there is no function for {each.what}: {failing[each.name]}" for each in patterns if each.name in failing
    )
    counted = replace(
        program,
        classes=tuple(replace(each, count=found.by_class[each.name]) for each in program.classes),
        notes=(*program.notes, *notes),
    )
    reasons = [why for _, _, why in found.failed]
    return _written(counted, left, definition, items, mine, reasons, place, total)


def _changing(program: Program, definition: TableDefinition, items: Sequence[Item]) -> set[str]:
    """The classes with which a graph changes items by a put of what was read."""
    source = source_of(program, [], ["Tried."])
    mine = [item for item in items if not is_own(definition, item)]
    failed = {_key(definition, item) for item, _, _ in tried(source, definition, mine).failed}
    try:
        changed = confirmed(source, definition, [each for each in items if _key(definition, each) not in failed], [])
    except AdjoinError:
        return set()
    return {name for name in changed.changed if name}


def _key(definition: TableDefinition, item: Item) -> str:
    return str([item[key.name] for key in definition.keys])


def _nothing(
    definition: TableDefinition,
    items: Sequence[Item],
    mine: Sequence[Item],
    notes: Sequence[str],
    place: str,
    total: int | None,
) -> Inferred:
    """A program without classes, for a table that nothing explains."""
    program = Program(definition, (), notes=tuple(notes))
    return _written(program, [], definition, items, mine, ["no class was found"] * len(mine), place, total)


def _written(
    program: Program,
    patterns: Sequence[Pattern],
    definition: TableDefinition,
    items: Sequence[Item],
    mine: Sequence[Item],
    reasons: Sequence[str],
    place: str,
    total: int | None,
) -> Inferred:
    counts = Counter(re.sub(r"the stored item \(.*?\) ", "", why) for why in reasons)
    explained = len(mine) - len(reasons)
    share = 100 * explained / len(mine) if mine else 100.0
    of = f" of about {total:,}" if total is not None and total > len(items) else ""
    told = [
        f"{definition.name}: classes, layout and access patterns, written by `adjoin infer`.",
        f"Read {len(items):,}{of} items of {place}. {explained:,} of {len(mine):,} are explained ({share:.1f} %): "
        f"read by one of these classes, and written back byte for byte.",
    ]
    if len(items) > len(mine):
        told.append(f"{len(items) - len(mine):,} further items are adjoin's own, and were left out.")
    for why, number in counts.most_common(20):
        told.append(f"Not explained: {number:,} items. {why}.")
    told += [f"Unsure: {note}." for note in program.notes]
    source = source_of(program, patterns, told)
    return Inferred(
        source, program, tuple(patterns), len(mine), explained, len(items) - len(mine), tuple(counts.most_common())
    )
