"""`adjoin out`: prints the edges of one class that leave a node."""

from __future__ import annotations

from adjoin.cli.edges import edges_command

COMMAND = edges_command("out", "prints the edges of one class that leave a node")
