"""One side of a copy as the counting kernels take it: made once per type, read by any number of threads."""

from libc.stdint cimport int32_t, int64_t


cdef class SideTable:
    """Points into columns that it keeps alive; they are not checked again."""

    def __init__(self, int64_t itemsize, bint staged, list bounds not None, tuple strides not None,
                 tuple digits not None, int64_t tiles, int64_t replicas, bint stepped):
        """`bounds`: (3, partitions) of each axis. `digits`: (axis, divisor, count), fastest first, 0 for the rest."""
        cdef SideData* d = &self.data
        cdef const int64_t[:, ::1] bound
        cdef int a, k
        self.bounds = bounds
        d.rank = len(bounds)
        d.itemsize = itemsize
        d.staged = staged
        for a in range(d.rank):
            bound = bounds[a]
            d.parts[a] = bound.shape[1]
            d.stride[a] = strides[a]
            d.start[a] = &bound[0, 0]
            d.logical[a] = &bound[1, 0]
            d.physical[a] = &bound[2, 0]
        d.digits = len(digits)
        for k in range(d.digits):
            d.axis[k], d.divisor[k], d.count[k] = digits[k]
        d.tiles = tiles
        d.classes = tiles // replicas
        d.replicas = replicas
        d.stepped = stepped
        d.linear = False
        self.has_classes = False
        self.columns = []

    def load_classes(self, const int32_t[::1] of_tile not None, const int32_t[:, ::1] partitions not None,
                     const int64_t[::1] row not None, const int32_t[::1] ordinals not None):
        """The class of each ordinal, the partitions of each class (classes, rank), and CSR rows and ordinals."""
        cdef SideData* d = &self.data
        self.columns.append((of_tile, partitions, row, ordinals))
        d.class_of = &of_tile[0]
        d.partitions = &partitions[0, 0] if d.rank else NULL
        d.class_row = &row[0]
        d.ordinals = &ordinals[0]
        self.has_classes = True

    def load_pieces(self, const int64_t[::1] row not None, const int64_t[::1] begin not None, int64_t grain,
                    bint scattered):
        """A linear side's rows (tiles + 1,), first elements (pieces + 1,), grain, and whether pieces are scattered."""
        cdef SideData* d = &self.data
        self.columns.append((row, begin))
        d.linear = True
        d.piece_row = &row[0]
        d.piece_begin = &begin[0]
        d.grain = grain
        d.scattered = scattered
