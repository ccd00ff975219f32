"""How much is read unless the program says otherwise: the defaults that stand in the signatures of calls.

They are apart from the plans that read so much, since a signature is needed when its module is imported, and the plan
only when it is called.
"""

from __future__ import annotations

SEGMENTS = 4
"""How many segments are read side by side by default. It is the same on every store, so that the cost is too."""
CAP = 10_000
"""How many edges of one class are read at one node, unless the program says otherwise."""
