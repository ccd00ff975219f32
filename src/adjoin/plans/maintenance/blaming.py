"""Which rules of one edge are to blame, where a transaction of that edge alone is refused for ever.

A sum that cannot be stored is told without any request, from what the node has. Of the others, one after the other
is set aside, until the rest can be applied; if no single one is to blame, all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from adjoin.plans.maintenance.postings import Posting, unstorable_sums
from adjoin.values import MAX_DIGITS

Rules: TypeAlias = tuple[str, ...]
_TOO_LONG = "{} cannot be stored with it: it has more than {} digits then, or is out of range; round what is added up"


@dataclass
class Blame:
    """What is tried for one edge, and what is left to try."""

    sums: dict[str, str]
    """Rules whose sums cannot be stored, to why; these are set aside in each try."""
    left: list[Rules]
    """The rules that are set aside besides, try by try."""
    aside: dict[str, str] = field(default_factory=dict)
    """Rule to why it is set aside in the present try."""

    def goes_on(self, reason: str) -> bool:
        """Turns to the next try, after one that failed with a reason; False if there is none."""
        if not self.left:
            return False
        self.aside = self.sums | dict.fromkeys(self.left.pop(0), reason)
        return True


def blame(posting: Posting) -> Blame:
    """For a transaction of one edge. What adds nothing is not to blame."""
    (entry,) = posting.entries
    sums = {name: _TOO_LONG.format(name, MAX_DIGITS) for name in unstorable_sums(posting)}
    others = tuple(name for name in entry.wanted if name not in sums)
    tries: list[Rules] = [(), *((name,) for name in others), others]
    return Blame(sums, [each for each in dict.fromkeys(tries) if each or sums])
