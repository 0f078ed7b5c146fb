# Totals of a copy without its runs: products of per-axis sums.
from libc.stdint cimport int32_t, int64_t

# A stretch of one axis that one source and one destination partition share.
cdef struct Overlap:
    int64_t x0, x1      # in coordinates of the source partition, carried padding included
    int64_t y0          # where x0 lies in the destination partition
    int64_t source, destination

cdef struct Totals:
    int64_t transfers, destinations, local_runs, elements
