"""The explorer: a page in a browser on which a graph and its table can be seen, and a small server for it.

`opening` opens the graph, `api` says what the page can ask, and each view of the page has a module. `serving` listens
on the loopback address. Nothing here reads a whole table: every answer is a page of something, or is made of a sample.
"""

from adjoin.explorer.opening import Explored, open_explored
from adjoin.explorer.serving import ExplorerServer

__all__ = ["Explored", "ExplorerServer", "open_explored"]
