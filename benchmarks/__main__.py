"""Runs benchmarks: python -m benchmarks [NAME ...], modules of this folder; without names, those of
seconds.
"""

import importlib
import sys

QUICK = ("training_step", "measuring", "importing", "variation_norm", "flow_gradients")

for name in sys.argv[1:] or QUICK:
    importlib.import_module(f"{__package__}.{name}").main()
