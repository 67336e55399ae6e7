"""python -m benchmarks [NAME ...]"""

import sys

from . import importing, measuring, training_step

BENCHMARKS = {"training_step": training_step, "measuring": measuring, "importing": importing}

for name in sys.argv[1:] or BENCHMARKS:
    BENCHMARKS[name].main()
