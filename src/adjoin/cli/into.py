"""`adjoin into`: prints the edges of one class that arrive at a node."""

from __future__ import annotations

from adjoin.cli.edges import edges_command

COMMAND = edges_command("into", "prints the edges of one class that arrive at a node")
