"""Copying a table from one store to another: `copy`, `verify`, and the file that stores the progress of a copy."""

from adjoin.copying.state import Binding, StateFile
from adjoin.copying.transfer import Copied, Progress, copy, verify

__all__ = ["Binding", "Copied", "Progress", "StateFile", "copy", "verify"]
