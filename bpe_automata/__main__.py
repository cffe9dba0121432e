"""`python -m bpe_automata` is `bpe-automata`."""

import sys

from bpe_automata._cli import main

if __name__ == "__main__":
    sys.exit(main())
