# Totals of a copy without its runs: products of per-axis sums.
from libc.stdint cimport int32_t, int64_t

from ._sides cimport SideData, SideTable
from ._storage cimport MAX_RANK

cdef enum:
    MAX_LINKS = 8       # pairs of steps that a copy may link by; more are left to the walk

# What a kernel could not decide; the copy is then walked.
cdef enum:
    DONE = 0
    WALK = 1
    NO_MEMORY = 2

# A stretch of one axis that one source and one destination partition share.
cdef struct Overlap:
    int64_t x0, x1      # in coordinates of the source partition, carried padding included
    int64_t y0          # where x0 lies in the destination partition
    int64_t source, destination

cdef struct Totals:
    int64_t transfers, destinations, local_runs, elements, misaligned

cdef struct Work:
    const SideData* s
    const SideData* d
    # Overlaps of every axis, all in one array; `first[a]` is where axis a's begin, `row[a]` where each partition's do.
    Overlap* overlaps
    int64_t first[MAX_RANK + 1]
    int64_t* row[MAX_RANK]
    # Links of every overlap and pair of steps, and what a long run's cuts add: both are products over the axes.
    int links
    int source_step[MAX_LINKS]
    int destination_step[MAX_LINKS]
    int64_t* along[MAX_LINKS]
    # What messages count: `amount` along the axes (elements, or words along the lines of an uneven copy), times `unit`
    # and by `divide`: words.
    int64_t* amount
    int64_t unit, divide
    bint uneven                 # runs are lines along the fastest axis that are not all whole words
    int64_t longest             # a linear side's: the longest overlap of the last axis
    bint cuts
    int line                    # the axis of runs that are lines, -1 for none
    int chain                   # the axis that whole lines are chained along, -1 for none
    # Cuts: of runs along the fastest axis (there), times elements elsewhere; beside a linear side, the messages before
    # each of the last axis' overlaps.
    int64_t* lines
    int64_t* planes             # cuts: whole lines on the fastest axis, cuts of their chains on the second
    # The amount that each source partition gives and each destination partition takes, per axis.
    int64_t* given[MAX_RANK]
    int64_t* taken[MAX_RANK]
    int64_t class_stride[MAX_RANK]      # what a destination partition adds to the class
    void* memory

# Where the tiles of both sides are on the device. NULL devices are the identity.
cdef struct Device:
    const int32_t* source       # device tile of each source ordinal
    const int32_t* destination
    const int32_t* order        # source ordinals by device tile
    const int32_t* taker        # destination class of the device tiles, -1 for none, as far as `takers`
    int64_t takers
    const int32_t* holder       # source class likewise
    int64_t holders
    int64_t* sent               # words by device tile
    int64_t* received

cdef inline int64_t width(const SideData* s, int a, int64_t i) noexcept nogil:
    return (s.logical[a][i] if s.staged else s.physical[a][i]) - s.start[a][i]

cdef inline int64_t tile_of(const int32_t* device, int64_t ordinal) noexcept nogil:
    return ordinal if device == NULL else device[ordinal]

cdef inline int64_t overlap_of(const Work* w, int a, int64_t source, int64_t destination) noexcept nogil:
    """The overlap of two partitions, or -1. A source partition's overlaps stand in the order of the destination's."""
    cdef inline int64_t low = w.first[a] + w.row[a][source], high = w.first[a] + w.row[a][source + 1], n
    if low == high or destination < w.overlaps[low].destination:
        return -1
    n = min(low + destination - w.overlaps[low].destination, high - 1)
    while w.overlaps[n].destination > destination:      # empty partitions in between have no overlap
        n -= 1
    return n if w.overlaps[n].destination == destination else -1

cdef bint runs_along_rows(const SideData* side) noexcept nogil
cdef int32_t* outer_overlaps(const Work* w, bint to_linear, const int64_t* shape, int32_t** table) noexcept nogil
cdef int prepare(Work* w, const SideData* s, const SideData* d, const int64_t* offsets, bint share) noexcept nogil
cdef int decide(Work* w) noexcept nogil
cdef int count_decided(const Work* w, const int64_t* shape, const Device* device, int64_t* sent, int64_t* received,
                       Totals* t) noexcept nogil

cdef class Analysis:
    cdef Work work
    cdef Device device
    cdef const int64_t* shape       # of a linear side
    cdef readonly bint decided
    cdef SideTable source, destination
    cdef object kept
