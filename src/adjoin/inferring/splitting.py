"""Keys as tokens: where a text ends one part and begins the next.

`#` and `|` separate in every table. Other characters do so only if the table shows it: if many keys begin with the same
few words and that character. A date and time stays one token, whatever characters it has.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache

from adjoin.dataclass import dataclass
from adjoin.inferring.naming import is_generic

ALWAYS = "#|"
_PERHAPS = "/:~^;$"
"""Characters that separate everywhere in a key, if they separate at all."""
_LEADS = "_-."
"""Characters that separate only the first word from the rest, as in user_1: values contain them too often."""
_MOST = 0.9
"""The share of keys that begin with such a word, if the character after it separates."""
_LEFT = 0.02
"""The share of texts that may have something else than a word before a character that separates."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_WORD = re.compile(r"[#|/:~^;$]?[A-Za-z][A-Za-z _.\-]*")


def is_word(token: str) -> bool:
    """Whether a token may be a label: letters, and characters that join words."""
    return _WORD.fullmatch(token) is not None


@dataclass(frozen=True)
class KeyTokens:
    """A key in tokens, with the separators between them: one less than tokens."""

    tokens: tuple[str, ...]
    separators: tuple[str, ...]


@dataclass(frozen=True)
class Splitter:
    """Splits the keys of one table."""

    separators: str = ALWAYS
    leads: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """For each key attribute, words with the character that separates them from the rest, such as "user_"."""
    _known: dict[tuple[str, str], KeyTokens] = field(default_factory=dict)
    """What was split already: the same few thousand texts are looked at again for each program that is tried."""

    def split(self, text: str, name: str) -> KeyTokens:
        """The text of the key attribute of this name, in tokens."""
        found = self._known.get((text, name))
        if found is None:
            found = self._known[text, name] = self._split(text, name)
        return found

    def _split(self, text: str, name: str) -> KeyTokens:
        times = [found.span() for found in _TIME.finditer(text)]
        tokens, separators, start = [], [], 0
        # A separator that begins a key is part of its first word, as in #META.
        for found in _one_of(self.separators).finditer(text, 1):
            at = found.start()
            if not any(low <= at < high for low, high in times):
                tokens.append(text[start:at])
                separators.append(found[0])
                start = at + 1
        tokens.append(text[start:])
        if not separators and (lead := _lead(text)) in self.leads.get(name, ()):
            return KeyTokens((lead[:-1], text[len(lead) :]), (lead[-1],))
        return KeyTokens(tuple(tokens), tuple(separators))


@lru_cache(16)
def _one_of(characters: str) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(characters)}]")


def splitter_of(texts: Mapping[str, Sequence[str]]) -> Splitter:
    """The splitter for a table whose key attributes have these texts."""
    known = [text for each in texts.values() for text in each]
    found = ALWAYS + "".join(each for each in _PERHAPS if _separates(each, known))
    bare = {name: [text for text in each if not any(c in text for c in found)] for name, each in texts.items()}
    leads = {name: _leads_in(each) for name, each in bare.items()}
    # What an attribute says with its name needs no label: the value of "drive" is "d-7", and not "7".
    named = [name for name in leads if not (is_generic(name) or name.lower() == "id")]
    return Splitter(found, leads | {name: frozenset() for name in named if len(leads[name]) == 1})


def _separates(character: str, texts: list[str]) -> bool:
    """Whether few words come before a character, and many texts have it."""
    after: dict[str, set[str]] = defaultdict(set)
    count = 0
    for text in texts:
        bare = _TIME.sub("0", text)
        for token in re.split(r"[#|]", bare):
            before, found, rest = token.partition(character)
            if found:
                count += 1
                after[before].add(rest)
    words = [before for before in after if is_word(before)]
    # A few texts may be what somebody left behind.
    others = sum(len(rests) for before, rests in after.items() if not is_word(before))
    return (
        bool(count)
        and others <= _LEFT * count
        and 2 * len(words) <= count
        and any(len(after[word]) > 1 for word in words)
    )


def _lead(text: str) -> str:
    found = re.match(rf"[A-Za-z]+[{re.escape(_LEADS)}]", text)
    return found[0] if found and len(text) > len(found[0]) else ""


def _leads_in(texts: list[str]) -> frozenset[str]:
    """The words that begin keys without separators, if nearly all of these keys begin with one of a few."""
    distinct = {text for text in texts if not is_word(text)}
    for character in _LEADS:
        leads = Counter(
            lead
            for text in distinct
            if (lead := _lead(text)).endswith(character) and lead and any(map(str.isdigit, text[len(lead) :]))
        )
        # Words in upper case are labels more often than not; others may just begin a value, such as a title.
        most = leads.total() / 1.5 if all(map(str.isupper, leads)) else max(2, leads.total() / 4)
        is_frequent = leads.total() >= _MOST * len(distinct) and max(leads.values(), default=0) > 1
        if is_frequent and len(leads) <= most:
            return frozenset(leads)
    return frozenset()
