"""Floor 0: arrays in, arrays out. The hot loops of the package, compiled when it is installed.

Kernels know nothing of tokenizers or regexes; the floors above give them their arrays. Those of the
core lie beside it, in `canonical`.
"""

from importlib.util import find_spec

if find_spec("bpe_automata._kernels.watch") is None:
    raise ImportError(
        "the kernels of bpe_automata are not compiled: `pip install -e .` in its repository does it"
    )
