# Bytes between arrays and shards' storage, and along a plan's runs.
from libc.stdint cimport int64_t, uint8_t

from ._storage cimport MAX_DIGITS, MAX_RANK, Digit

# One loop of a strided move: how often, and how many bytes each step goes on on both sides.
cdef struct Loop:
    int64_t count, source, target

# One shard between an array and its storage. An axis' coordinates below its logical width are a few products of digit
# ranges (all coarser digits fixed, one from 0 to a limit, all finer ones whole), and so are those above it; so a shard
# moves in a few strided pieces, and its padding is a few strided spans, whatever the order.
cdef struct Shard:
    int rank, digits
    bint packing                # from the array to the storage, or back
    bint streamed               # around the cache
    int64_t itemsize
    Digit digit[MAX_DIGITS]     # by divisor, largest first
    int64_t logical[MAX_RANK]   # widths in elements
    int64_t width[MAX_RANK]
    int64_t step[MAX_RANK]      # bytes from one element of the array to the next along each axis

cdef void move(Loop* loops, int n, char* source, char* target, int64_t unit, bint streamed) noexcept nogil
cdef void move_shard(const Shard* s, char* array, char* storage) noexcept nogil
cdef void zero_padding(const Shard* s, char* storage) noexcept nogil

cdef class Shards:
    cdef int64_t itemsize
    cdef const int64_t[:, ::1] table
    cdef const int64_t[:, ::1] start
    cdef const int64_t[:, ::1] logical_end
    cdef const int64_t[:, ::1] physical_end
    cdef const int64_t[::1] at
    cdef int convert(self, bint packing, array, const uint8_t[::1] data) except -1
    cdef void move_all(self, bint packing, bint streamed, char* array, const int64_t* steps, const int64_t* staged_at,
                       char* data) noexcept nogil
