"""Copying a table from one store to another: `copy`, and what remembers how far it came."""

from adjoin.copying.state import Binding, StateFile
from adjoin.copying.transfer import Copied, Progress, copy
from adjoin.copying.verify import verify

__all__ = ["Binding", "Copied", "Progress", "StateFile", "copy", "verify"]
