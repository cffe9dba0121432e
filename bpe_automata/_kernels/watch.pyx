# cython: language_level=3
# cython: freethreading_compatible=True
"""The check that long kernels make now and then: see `watch.pxd`."""

from cpython.exc cimport PyErr_CheckSignals

from bpe_automata._budget import check


cdef int look() except -1 with gil:
    PyErr_CheckSignals()
    check()
    return 0
