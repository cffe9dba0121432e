"""`python -m experiments`: see `experiments.run.command`."""

import sys

from experiments.run.command import main

if __name__ == "__main__":
    sys.exit(main())
