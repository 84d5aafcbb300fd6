"""Run the command line: ``python -m hwcheck``."""

import sys

from hwcheck.cli.start import main

sys.exit(main())
