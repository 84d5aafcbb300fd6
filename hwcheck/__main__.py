"""Run the command line: ``python -m hwcheck``."""

import sys

from hwcheck.cli.main import main

sys.exit(main())
