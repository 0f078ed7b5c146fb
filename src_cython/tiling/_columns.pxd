# The columns of a list and how far they are filled; what both ways of filling them write into.
from libc.stdint cimport int32_t, int64_t

cdef enum:
    CUT = 16592     # bytes: the longest message, 4,148 words

cdef struct Columns:
    int64_t transfers, destinations, locals_
    int64_t capacity, ends, local_capacity
    int32_t* source_tile
    int64_t* source_offset
    int64_t* size
    int64_t* start              # one longer than the others
    int32_t* destination_tile
    int64_t* destination_offset
    int32_t* local_tile
    int64_t* local_source
    int64_t* local_size
    int64_t* local_destination

cdef Columns open_columns(int32_t[::1] source_tile, int64_t[::1] source_offset, int64_t[::1] size, int64_t[::1] start,
                          int32_t[::1] destination_tile, int64_t[::1] destination_offset, int32_t[::1] local_tile,
                          int64_t[::1] local_source, int64_t[::1] local_size, int64_t[::1] local_destination)


cdef inline bint put_local(Columns* c, int32_t tile, int64_t source, int64_t size, int64_t destination) noexcept nogil:
    """One local run. False where there is no room for it."""
    cdef int64_t n = c.locals_
    if n == c.local_capacity:
        return False
    c.local_tile[n] = tile
    c.local_source[n] = source
    c.local_size[n] = size
    c.local_destination[n] = destination
    c.locals_ = n + 1
    return True
