# Digits of an element order, and the boxes and spans that follow from them.
from libc.stdint cimport int64_t

cdef enum:
    MAX_RANK = 32
    MAX_DIGITS = 40     # an order has at most three digits more than axes

# One digit of a mixed-radix offset: value (x[axis] // divisor) % count, weighing `stride` elements.
cdef struct Digit:
    int axis
    int64_t divisor, count, stride

cdef int load_digits(const int64_t* table, int n, const int64_t* widths, Digit* digits) noexcept nogil
