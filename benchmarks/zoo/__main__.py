"""``python -m benchmarks.zoo``: see run.py."""

import sys

from benchmarks.zoo.run import main

if __name__ == "__main__":
    sys.exit(main())
