"""`adjoin copy` in a process that saves its state after every page, so that it can be stopped at many places.

`python -m tests.copying.saving_copy <arguments of adjoin copy>`
"""

from __future__ import annotations

import sys

from adjoin.cli import main
from adjoin.copying import transfer

if __name__ == "__main__":
    transfer.SAVE_SECONDS = 0.0
    sys.exit(main(["copy", *sys.argv[1:]]))
