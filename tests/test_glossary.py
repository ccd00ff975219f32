"""Words: a public class name means one thing, and the words of ours that people meet are in docs/glossary.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from inspect import isclass, signature
from pathlib import Path

import adjoin

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "adjoin"
GLOSSARY = ROOT / "docs" / "glossary.md"

# Words in names of classes that are not ours: of DynamoDB, of graphs, of Python and databases, and plain English. A new
# class whose name has another word needs a line in the glossary, or a word here.
THEIRS = frozenset(
    """
    access accesses action add adjacency adjoin admission again all already amount an and answer answerer
    answering any append arguments arithmetic arrived async at attribute awaiting back backoff bad base begins
    begun between binding bindings blame body book bound bounds broken budget buffer busy by call canceled
    cancellation change changes check clause client closed column coming command common comparator compare
    compared comparison components computed condition conditions conflict conjunction connection connections
    consistency consumed contains context count counter counting create credentials crowd cut cyclic daemon date
    damaged db decided default definition delete denied describe description destination difference differences
    differs direction discard disjunction document done drop duck due dump durability dynamo empty end endpoint
    ends error exceeded exists expected expired expires explanation export expression expressions extra failed
    failure family fault file fill filling find fit fixed flag form found from function further future get given gone
    graph handler has hcl health hints history hold holds hop http identity if immutable in indexed invalid item
    items iterator keyed keyword known large later latest levels limits line lines list listing lite literal
    live location lock logic lost made manage mark materialized max member membership metric min misfit mismatch
    misshapen missing model moves name named naming narrow negation neighbours normal number numbers of old operand
    operation operator option or ordered outcome over own page pages pair parameter parameters parsed partition path
    pattern patterns payload placeholders predicate prepared prices progress projection put query question
    quoting range rate read reader reading reason rebuilt recomputed recorded reference refused rehearsing
    remove repairs replaced report request response restored restorer restoring retry returned reused row run
    scan schema search seen segment sent server service settings shape short signer size so sort spark sq stage
    step stop storage stored stream streams stretch structure sum summarized supported suspect table tables tag
    tags tell term test text the throttled throughput time to told too top transact transport tree trimmed turn
    type unapplied unique unknown unreachable update usage validate value values verbs view waits want wanted
    watcher whole wide with writable writing written wrong
    """.split()  # noqa: SIM905 (one word a line is three pages)
)


# Words in messages, in the help of commands and in what people call, beyond those above, that are not ours either.
PLAIN = frozenset((Path(__file__).parent / "plain_words.txt").read_text().split())

# Code in a message: what is quoted, and names with capitals or underscores.
_CODE = re.compile(r"`[^`]*`|--[a-z-]+|\w*[A-Z_]\w*|\w+\(|\w+=")


@cache
def modules() -> dict[Path, ast.Module]:
    """The package, parsed when a test asks: every worker imports this file, and one runs its tests."""
    return {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def words_of(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def words_in(text: str) -> set[str]:
    """The words of a sentence, without code."""
    return set(re.findall(r"[a-z]+", _CODE.sub(" ", text)))


def forms_of(word: str) -> set[str]:
    """The word, and what it may be a form of: nodes, copies, applied, sharded, sharding."""
    stems = {word.removesuffix(end) for end in ("s", "es", "d", "ed", "ing")}
    return {
        word,
        {"children": "child"}.get(word, word),
        *stems,
        word.removesuffix("ies") + "y",
        word.removesuffix("ied") + "y",
    }


def terms() -> list[str]:
    """The words that the glossary defines."""
    rows = re.findall(r"^\| ([^|]+?) \| ", GLOSSARY.read_text(), re.MULTILINE)
    return [term for row in rows if row != "word" for term in re.sub(r" \(.*?\)", "", row).split(", ")]


def defined() -> Iterator[tuple[str, str]]:
    """The public classes and type aliases of the package, and where each is defined."""
    for path, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, str(path.relative_to(PACKAGE))
            elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
                name = ast.unparse(node.target)
                if not name.startswith("_"):
                    yield name, str(path.relative_to(PACKAGE))


def messages() -> Iterator[str]:
    """The texts of errors that adjoin raises itself, and the help of its commands."""
    for path, tree in modules().items():
        if "server" in path.parts:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                yield from texts_in(node.exc)
            elif isinstance(node, ast.keyword) and node.arg in ("help", "description") and "cli" in path.parts:
                yield from texts_in(node.value)


def texts_in(tree: ast.AST) -> Iterator[str]:
    for part in ast.walk(tree):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def called() -> Iterator[str]:
    """The names that people write: what adjoin exports, and the attributes and parameters of that."""
    for name in adjoin._MODULE_OF:
        yield name
        thing = getattr(adjoin, name)
        ours = [base for base in thing.__mro__ if base.__module__.startswith("adjoin.")] if isclass(thing) else []
        members = {name: value for base in ours for name, value in vars(base).items() if name[0] != "_"}
        yield from members
        for each in (thing, *members.values()):
            with suppress(TypeError, ValueError):
                yield from (parameter for parameter in signature(each).parameters if parameter[0] != "_")


def test_no_public_name_is_defined_twice() -> None:
    places: dict[str, list[str]] = {}
    for name, place in defined():
        places.setdefault(name, []).append(place)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_every_word_of_the_glossary_is_used() -> None:
    texts = [path.read_text().lower() for path in (ROOT / "docs").glob("*.md") if path != GLOSSARY]
    texts += [(ROOT / "README.md").read_text().lower(), *(path.read_text().lower() for path in modules())]
    everything = "\n".join(texts).replace("_", " ")
    unused = [term for term in terms() if not re.search(rf"\b{re.escape(term.lower())}", everything)]
    assert unused == []


def test_every_word_is_defined_once() -> None:
    assert sorted(term for term in set(terms()) if terms().count(term) > 1) == []


def known() -> set[str]:
    return {*THEIRS, *PLAIN} | {word for term in terms() for word in re.split(r"[ -]", term.lower())}


def unknown(words: Iterable[str]) -> list[str]:
    """The words that are neither in the glossary nor said to be plain."""
    words_known = known()
    return sorted(word for word in words if not forms_of(word) & words_known)


def test_words_of_ours_in_public_names_are_in_the_glossary() -> None:
    said = {word for message in messages() for word in words_in(message)}
    public = {word for name in adjoin._MODULE_OF for word in words_of(name)}
    assert unknown({word for name, _ in defined() for word in words_of(name)} & (public | said)) == []
    assert unknown(word for name in called() for word in words_of(name)) == []


def test_words_of_ours_in_messages_are_in_the_glossary() -> None:
    """A word that a reader cannot know is defined there. One that everybody knows is added to tests/plain_words.txt."""
    assert unknown(word for message in messages() for word in words_in(message)) == []


def test_an_odd_word_is_noticed() -> None:
    assert unknown(words_in("the grommet of node 'S1' is wrong; use `gizmo`, --widget or Widget(…)")) == ["grommet"]
    assert unknown(words_in("nodes and copies of a ledger are sharded")) == []


def test_the_list_of_plain_words_holds_nothing_that_nobody_says() -> None:
    said = {word for message in messages() for word in words_in(message)}
    said |= {word for name in called() for word in words_of(name)}
    assert sorted(PLAIN - {form for word in said for form in forms_of(word)}) == []
    assert sorted(PLAIN & THEIRS) == []


def test_the_list_of_their_words_holds_nothing_that_no_name_has() -> None:
    used = {word for name, _ in defined() for word in words_of(name)}
    assert sorted(THEIRS - used) == []
