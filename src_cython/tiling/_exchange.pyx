"""Loads of transfer lists."""

from libc.stdint cimport int32_t, int64_t


def add_words(const int32_t[::1] source_tile not None, const int64_t[::1] size not None,
              const int64_t[::1] start not None, const int32_t[::1] destination_tile not None,
              int64_t[::1] sent not None, int64_t[::1] received not None):
    """Add each transfer's 4-byte words, rounded up, to its sender once and to every receiver."""
    cdef int64_t i, e, words
    with nogil:
        for i in range(source_tile.shape[0]):
            words = (size[i] + 3) >> 2
            sent[source_tile[i]] += words
            for e in range(start[i], start[i + 1]):
                received[destination_tile[e]] += words
