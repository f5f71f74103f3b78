"""``python -m benchmarks.doctor``: see run.py."""

import sys

from benchmarks.doctor.run import main

sys.exit(main())
