"""The columns of a list: what both ways of filling them write into."""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset


cdef Columns open_columns(int32_t[::1] source_tile, int64_t[::1] source_offset, int64_t[::1] size, int64_t[::1] start,
                          int32_t[::1] destination_tile, int64_t[::1] destination_offset, int32_t[::1] local_tile,
                          int64_t[::1] local_source, int64_t[::1] local_size, int64_t[::1] local_destination):
    """Point at columns of exactly the counted lengths (`start` is one longer); nothing is filled yet."""
    cdef Columns c
    memset(&c, 0, sizeof(Columns))
    c.capacity = source_tile.shape[0]
    c.ends = destination_tile.shape[0]
    c.local_capacity = local_tile.shape[0]
    c.start = &start[0]
    if c.capacity:
        c.source_tile = &source_tile[0]
        c.source_offset = &source_offset[0]
        c.size = &size[0]
        c.destination_tile = &destination_tile[0]
        c.destination_offset = &destination_offset[0]
    if c.local_capacity:
        c.local_tile = &local_tile[0]
        c.local_source = &local_source[0]
        c.local_size = &local_size[0]
        c.local_destination = &local_destination[0]
    return c
