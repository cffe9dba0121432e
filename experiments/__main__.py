"""`python -m experiments`: see `experiments.lab`."""

import sys

from experiments.lab import main

if __name__ == "__main__":
    sys.exit(main())
