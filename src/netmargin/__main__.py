"""Run the command line by `python -m netmargin`."""

import sys

from .cli import main

sys.exit(main())
