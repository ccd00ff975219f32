"""The shape of every operation's input, by the operation's name.

Members stand in the order in which the service checks them and choices in the order in which it lists them,
where that is known, and as documented where it is not.
"""

from __future__ import annotations

from adjoin.server.inputs.absent import ABSENT_INPUTS
from adjoin.server.inputs.items import ITEM_INPUTS
from adjoin.server.inputs.streams import STREAM_INPUTS
from adjoin.server.inputs.tables import TABLE_INPUTS
from adjoin.server.shapes import Structure

INPUTS: dict[str, Structure] = {**ITEM_INPUTS, **TABLE_INPUTS, **STREAM_INPUTS, **ABSENT_INPUTS}

__all__ = ["INPUTS"]
