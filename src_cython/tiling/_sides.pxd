# One side of a copy as the counting kernels take it: how its axes are cut, its digits, and its tiles.
from libc.stdint cimport int32_t, int64_t

from ._storage cimport MAX_DIGITS, MAX_RANK

cdef struct SideData:
    int rank
    int64_t itemsize
    bint staged                         # stored widths are the logical ones
    # Per axis: partitions, and their start, logical end and physical end.
    int64_t parts[MAX_RANK]
    int64_t stride[MAX_RANK]            # tile stride
    const int64_t* start[MAX_RANK]
    const int64_t* logical[MAX_RANK]
    const int64_t* physical[MAX_RANK]
    # Digits, fastest first; a count of 0 is the rest of the axis.
    int digits
    int axis[MAX_DIGITS]
    int64_t divisor[MAX_DIGITS]
    int64_t count[MAX_DIGITS]
    # Classes: of each ordinal, the partitions of each class (classes, rank), and the ordinals of each.
    int64_t tiles, classes, replicas
    bint stepped                        # tiles can be gone through by stepping each axis' partition
    const int32_t* class_of
    const int32_t* partitions
    const int64_t* class_row
    const int32_t* ordinals
    # Linear: pieces of each tile, and each piece's first element.
    bint linear, scattered              # scattered: a piece's elements don't stand in the order of its row
    int64_t grain
    const int64_t* piece_row
    const int64_t* piece_begin

cdef class SideTable:
    cdef SideData data
    cdef object bounds, columns
    cdef readonly bint has_classes
