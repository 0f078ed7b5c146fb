"""One side of a copy as the counting kernels take it: made once per type, read by any number of threads."""

from libc.stdint cimport int32_t, int64_t


cdef class SideTable:
    """Points into columns that it keeps alive; they are not checked again."""

    def __init__(self, int64_t itemsize, bint staged, bounds not None, digits not None, classes not None, pieces,
                 int64_t replicas):
        """`bounds`: (3, partitions) of each axis. `digits`: (axis, divisor, count), fastest first, 0 for the rest.

        `classes`: of each ordinal (tiles,), partitions of each (classes, rank), and CSR rows and ordinals. `pieces`:
        None, or a linear side's rows (tiles + 1,), first elements (pieces + 1,), grain, and whether a piece's elements
        are scattered.
        """
        cdef SideData* d = &self.data
        cdef const int64_t[:, ::1] bound
        cdef const int32_t[::1] of_tile
        cdef const int32_t[:, ::1] partitions
        cdef const int64_t[::1] row
        cdef const int32_t[::1] ordinals
        cdef const int64_t[::1] begin
        cdef int a, k
        self.kept = (bounds, classes, pieces)
        d.rank = len(bounds)
        d.itemsize = itemsize
        d.staged = staged
        for a in range(d.rank):
            bound = bounds[a]
            d.parts[a] = bound.shape[1]
            d.start[a] = &bound[0, 0]
            d.logical[a] = &bound[1, 0]
            d.physical[a] = &bound[2, 0]
        d.digits = len(digits)
        for k in range(d.digits):
            d.axis[k], d.divisor[k], d.count[k] = digits[k]
        of_tile, partitions, row, ordinals = classes
        d.tiles = of_tile.shape[0]
        d.classes = row.shape[0] - 1
        d.replicas = replicas
        d.class_of = &of_tile[0]
        d.partitions = &partitions[0, 0] if d.rank else NULL
        d.class_row = &row[0]
        d.ordinals = &ordinals[0]
        d.linear = pieces is not None
        if d.linear:
            row, begin, d.grain, d.scattered = pieces
            d.piece_row = &row[0]
            d.piece_begin = &begin[0]
