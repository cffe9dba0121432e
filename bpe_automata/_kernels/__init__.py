"""Floor 0: the hot loops of the package, from arrays to arrays, compiled when it is installed.

Kernels know nothing of tokenizers or regexes; the floors above give them their arrays. The kernels
of the canonical automaton are in `canonical`, next to the code that calls them.
"""

from importlib.util import find_spec

if find_spec("bpe_automata._kernels.watch") is None:
    raise ImportError(
        "the kernels of bpe_automata are not compiled: `pip install -e .` in its repository does it"
    )
