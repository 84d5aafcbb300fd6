"""``python -m hwcheck.lab.reboot FOLDER``: boot a lab node in tree form; what its own tools call for ``reboot``."""

from __future__ import annotations

import sys
from pathlib import Path

from hwcheck.lab import nodes


def main(folder: Path) -> None:
    """Boot the node of a folder."""
    nodes.reboot(nodes.load(folder.parent, folder.name))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
