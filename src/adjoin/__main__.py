"""`python -m adjoin` is the command line."""

from __future__ import annotations

import sys

from adjoin.cli import main

sys.exit(main())
