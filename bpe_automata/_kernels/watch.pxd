# Ends kernels that may be long: on Ctrl-C, and when the time of a budget is up. Such a kernel keeps
# a counter, at first 0, and calls `poll(&polls)` in its outer loops. The first call looks at the
# clock and for signals, and then every POLLS-th one.

from libc.stdint cimport int64_t

cdef enum:
    POLLS = 20000  # between two looks at the clock: some milliseconds


cdef int look() except -1 with gil


cdef inline int poll(int64_t* polls) except -1 nogil:
    """Raises BudgetExceededError, and what a signal's handler raises: KeyboardInterrupt."""
    polls[0] -= 1
    if polls[0] > 0:
        return 0
    polls[0] = POLLS
    return look()
