# Transfer lists to strided rows, and back: columns as pointers, CSR on both sides. Nothing is for cimport.
from libc.stdint cimport int32_t, int64_t

# A transfer list of n transfers to m destinations; while it is filled, what there is of it so far.
cdef struct List:
    int64_t n, m
    int32_t* tile
    int64_t* offset
    int64_t* size
    int64_t* start          # (n + 1)
    int32_t* to_tile        # (m)
    int64_t* to_offset

cdef struct Totals:
    int64_t n, m

# Strided rows: a list of their first transfers, and how often and by what steps each repeats.
cdef struct Strided:
    List head
    int64_t* count
    int64_t* source_step
    int64_t* destination_step
