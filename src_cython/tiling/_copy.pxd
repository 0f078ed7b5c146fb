# Regions to runs: walk every source shard in storage order, and find where each element goes.
from libc.stdint cimport int32_t, int64_t, uint8_t

from ._columns cimport Columns
from ._storage cimport MAX_DIGITS, MAX_RANK, Digit

# One stretch of a source axis that one destination partition takes; the overlay's row and what follows from it.
cdef struct Segment:
    int64_t x0, x1          # half-open, in coordinates of the source partition
    int64_t y0              # where x0 lies in the destination partition
    int64_t part            # the destination partition
    int64_t z0, zstep       # views: what x0 adds to the joint coordinate, and what each further step adds
    int64_t group, kind     # what the destination partition adds to the destination class, and to the kind of widths

# A copy as the walker needs it; constant while it runs.
cdef struct Problem:
    int rank
    int64_t itemsize
    # Source: digits, and per axis the widths and the segments of each partition.
    int digits
    const int64_t* table
    const int64_t* first        # (rank + 1) where each axis' partitions begin in `widths`
    const int64_t* widths
    const int64_t* class_strides
    const int64_t* rows         # segment rows: axis a, partition i at first[a] + a + i
    const Segment* segments
    # Source tiles by device tile; `sends` marks the replica that sends.
    int64_t tiles
    const int32_t* tile
    const int32_t* class_
    const uint8_t* sends
    const int32_t* holder       # (device tiles) the source class that a tile holds, or -1
    # Linear source: pieces of each class, and the tensor's shape.
    bint linear
    const int64_t* piece_row
    const int64_t* piece_begin
    const int64_t* shape
    # Destination storage: an axis' offset is its low digits' plus (y // divisor) * stride of the kind of widths.
    int lows[MAX_RANK]
    Digit low[MAX_RANK][3]
    int64_t divisor[MAX_RANK]
    const int64_t* strides      # (kinds, rank)
    int fast_axis, second_axis  # the two fastest digits' axes (-1: none)
    int64_t fast_count, second_count, second_stride     # count 0: the rest; stride 0: by kind of widths
    # Destination tiles: of each class, ascending; and the class of each device tile.
    const int64_t* group_row
    const int32_t* group_tile
    const int32_t* taker
    const int64_t* taker_strides
    const int64_t* taker_parts
    # A view's destination axis whose coordinate is a sum over two source axes.
    int joint
    const Segment* joints
    int64_t joint_count
    # Linear destination: runs are cut at its pieces.
    bint to_linear, pairs
    const int64_t* to_begin
    const int64_t* to_offset
    int64_t to_pieces

# Where runs go: totals always; loads and columns where there are any.
cdef struct Sink:
    Columns c
    bint filling
    int64_t bytes, misaligned
    int64_t steps           # of the walk, which is given up after MOST_STEPS
    int64_t* sent
    int64_t* received

# The walk over one source shard.
cdef struct Walk:
    const Problem* p
    Sink* sink
    int digits
    Digit digit[MAX_DIGITS]
    bint last[MAX_DIGITS]       # whether the digit is its axis' fastest, which settles the coordinate
    int64_t low[MAX_RANK]       # the axis' segments
    int64_t high[MAX_RANK]
    int64_t at[MAX_RANK]        # the coordinate, as far as it is settled
    int64_t group, kind, base, joint    # what the settled axes add up to
    int64_t top[MAX_RANK]       # y // divisor of the settled axes
    bint fusable
    int32_t tile, class_
    bint sends
    int64_t piece               # the linear destination's piece where the last run was
    # The run that may still grow.
    int64_t run_source, run_destination, run_length, run_group
