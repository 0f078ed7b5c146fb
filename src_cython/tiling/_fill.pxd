# Columns of the copies whose runs are regular: every overlap of the innermost axis is one run.
from libc.stdint cimport int32_t, int64_t, uint32_t

from ._columns cimport Columns
from ._count cimport Device, Work
from ._storage cimport MAX_DIGITS, MAX_RANK

# One run of the innermost axis, in bytes: where it begins on both sides, its size, how wide the destination's partition
# is, and what the partition adds to the destination class.
cdef struct Piece:
    int64_t source, size, destination, wide, group

# The runs of one source partition of the inner axis and one of the innermost loop, as columns: what all shards share
# that differ in slower loops only. `place + wide * rows` is the destination's offset.
cdef struct Pattern:
    int64_t* begin              # (loop partitions, inner partitions) rows, -1 where none is made yet
    int64_t* source
    int64_t* size
    int64_t* place
    uint32_t* wide
    int32_t* group
    int64_t made
    void* memory

# The walk over one source shard.
cdef struct Fill:
    const Work* w
    Columns* out
    int inner                   # the axis whose overlaps are the runs
    int first                   # the fastest digit that is a loop
    Piece* pieces
    Pattern pattern             # memory NULL: the innermost loop is not patterned
    const int32_t* tile_of_class
    # The shard.
    int32_t tile
    int64_t stride[MAX_DIGITS]  # bytes
    int64_t row[MAX_RANK]       # the axis' overlaps
    int64_t end[MAX_RANK]
    int64_t part[MAX_RANK]
    int64_t own, own_group      # the piece that this tile takes itself, and the class that the outer axes must have
    int64_t own_loop            # the overlap of the innermost loop that this tile takes itself, or -1
    # Where the loops are: the destination's digit of each axis, and how many there are.
    int64_t at[MAX_RANK]
    int64_t count[MAX_RANK]
