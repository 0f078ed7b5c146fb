"""One axis: where its partitions begin and end, and the overlay of two partitionings of it."""

from libc.stdint cimport int64_t


def fill_bounds(int64_t logical, int64_t groups, int64_t per_group, int64_t block, int64_t blocks,
                int64_t shard_multiple, int64_t[::1] start not None, int64_t[::1] logical_end not None,
                int64_t[::1] physical_end not None):
    """Partition bounds of an axis of `groups` groups, each of `logical` elements in `blocks` blocks.

    The three columns have `groups * per_group` rows; the first `blocks % per_group` partitions of each group
    get one block more.
    """
    cdef int64_t short = blocks // per_group, longer = blocks % per_group
    cdef int64_t g, k, n = 0, first, width, end
    with nogil:
        for g in range(groups):
            first = 0
            for k in range(per_group):
                width = (short + (1 if k < longer else 0)) * block
                end = first + width
                start[n] = g * logical + first
                logical_end[n] = g * logical + max(min(end, logical), first)
                physical_end[n] = start[n] + (width + shard_multiple - 1) // shard_multiple * shard_multiple
                first = end
                n += 1


def fill_overlay(const int64_t[:, ::1] source not None, const int64_t[:, ::1] destination not None, int64_t offset,
                 bint share_padding, int64_t[::1] row not None, int64_t[:, ::1] segments not None,
                 int64_t[::1] carried not None):
    """Overlay two partitionings: destination coordinate d meets source coordinate d + offset.

    `source` and `destination` are (3, partitions): start, logical end, physical end. Fills `segments` with
    (x0, x1, y0, part, 0, 0) ordered by source partition, then coordinate; `row` (source partitions + 1) says where each
    partition's segments begin; `carried` (destination partitions) gets the padding elements that a segment carries
    into each (both ends must coincide). `segments` needs at most the sum of the partitions. Returns their number.
    """
    cdef int64_t i, j = 0, n = 0, low, high, extra, ends, sources = source.shape[1], destinations = destination.shape[1]
    with nogil:
        for j in range(destinations):
            carried[j] = 0
        j = 0
        for i in range(sources):
            row[i] = n
            # Nonempty partitions ascend and are disjoint on both sides; empty ones may start anywhere.
            while source[0, i] < source[1, i] and j < destinations:
                if destination[0, j] == destination[1, j]:
                    j += 1
                    continue
                low = max(source[0, i], destination[0, j] + offset)
                ends = destination[1, j] + offset
                high = min(source[1, i], ends)
                if low < high:
                    extra = 0
                    if share_padding and source[1, i] == ends:
                        extra = min(source[2, i] - source[1, i], destination[2, j] - destination[1, j])
                        carried[j] = extra
                    segments[n, 0] = low - source[0, i]
                    segments[n, 1] = high + extra - source[0, i]
                    segments[n, 2] = low - offset - destination[0, j]
                    segments[n, 3] = j
                    segments[n, 4] = 0
                    segments[n, 5] = 0
                    n += 1
                if ends > source[1, i]:
                    break
                j += 1
        row[sources] = n
    return n
