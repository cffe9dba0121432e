"""Floor 0: arrays in, arrays out. The hot loops of the package, compiled when it is installed.

Kernels know nothing of tokenizers or regexes; the floors above give them their arrays. Those of the
core lie beside it, in `_core`.
"""
