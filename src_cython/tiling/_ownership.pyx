"""Who owns what: the partition coordinates of tiles, and shard tables."""

from libc.stdint cimport int32_t, int64_t

cdef enum:
    MAX_RANK = 32


def fill_classes(const int64_t[:, ::1] axes not None, int64_t replicas, int32_t[::1] of_tile not None,
                 int64_t[::1] row not None, int32_t[::1] tiles not None):
    """Number every tile's combination of partition coordinates, and list the tiles of every combination.

    `axes` is (tiled axes, 3): tile stride, partitions, and what one partition adds to the class number. `of_tile`
    (tiles) gets the class of each ordinal; `row` (classes + 1) into `tiles` (tiles) the ordinals of each class,
    ascending.
    Returns -1, or the class that does not occur `replicas` times.
    """
    cdef int64_t count = of_tile.shape[0], classes = row.shape[0] - 1, t, k, value, rank = axes.shape[0]
    cdef int64_t left[MAX_RANK]
    cdef int64_t at[MAX_RANK]
    cdef int64_t bad = -1
    with nogil:
        for k in range(rank):
            left[k] = axes[k, 0]
            at[k] = 0
        for k in range(classes + 1):
            row[k] = 0
        value = 0
        for t in range(count):
            of_tile[t] = <int32_t> value
            row[value + 1] += 1
            # Step to the next tile: a coordinate moves every `stride` tiles.
            for k in range(rank):
                left[k] -= 1
                if left[k] == 0:
                    left[k] = axes[k, 0]
                    at[k] += 1
                    value += axes[k, 2]
                    if at[k] == axes[k, 1]:
                        at[k] = 0
                        value -= axes[k, 1] * axes[k, 2]
        for k in range(classes):
            if row[k + 1] != replicas:
                bad = k
                break
            row[k + 1] += row[k]
        if bad < 0:
            for t in range(count):
                value = of_tile[t]
                tiles[row[value]] = <int32_t> t
                row[value] += 1
            for k in range(classes, 0, -1):
                row[k] = row[k - 1]
            row[0] = 0
    return bad


def fill_shards(const int64_t[:, ::1] axes not None, const int64_t[:, ::1] bounds not None,
                const int32_t[::1] device not None, int64_t itemsize, int32_t[::1] tile not None,
                int64_t[:, ::1] start not None, int64_t[:, ::1] logical_end not None,
                int64_t[:, ::1] physical_end not None, int64_t[::1] size not None, int64_t[::1] offset not None,
                int64_t[::1] tile_bytes not None):
    """Fill the shard table of an axis-tiled tensor: one shard per tile, by ordinal.

    `axes` is (rank, 3): tile stride, partitions, and the axis' first column of `bounds`, which is (3, sum of
    partitions): start, logical end, physical end. `device` names the device tile of each ordinal.
    """
    cdef int64_t count = tile.shape[0], rank = axes.shape[0], t, k, b
    cdef int64_t left[MAX_RANK]
    cdef int64_t at[MAX_RANK]
    cdef int64_t total
    with nogil:
        for k in range(rank):
            left[k] = axes[k, 0]
            at[k] = 0
        for t in range(count):
            total = itemsize
            for k in range(rank):
                b = axes[k, 2] + at[k]
                start[t, k] = bounds[0, b]
                logical_end[t, k] = bounds[1, b]
                physical_end[t, k] = bounds[2, b]
                total *= bounds[2, b] - bounds[0, b]
                left[k] -= 1
                if left[k] == 0:
                    left[k] = axes[k, 0]
                    at[k] += 1
                    if at[k] == axes[k, 1]:
                        at[k] = 0
            tile[t] = device[t]
            size[t] = total
            offset[t] = 0
            tile_bytes[device[t]] = total


def count_pieces(int64_t grains, int64_t grain, int64_t tiles, int64_t columns, int64_t[::1] begin not None,
                 int64_t[::1] first not None):
    """Cut `grains` grains into `tiles` intervals, and count the row pieces of each.

    `begin` (tiles + 1) gets the first element of each interval, `first` (tiles + 1) the number of pieces before it.
    Returns the number of pieces.
    """
    cdef int64_t t, e = 0, n = 0, short = grains // tiles, longer = grains % tiles
    with nogil:
        for t in range(tiles):
            begin[t] = e
            first[t] = n
            e += (short + (1 if t < longer else 0)) * grain
            n += (e - 1) // columns - begin[t] // columns + 1
        begin[tiles] = e
        first[tiles] = n
    return n


def fill_pieces(const int64_t[::1] begin not None, const int64_t[::1] first not None, int64_t columns,
                int64_t[::1] piece_begin not None, int32_t[::1] piece_ordinal not None):
    """The first element (in row-major order of the tensor) of every piece, and the ordinal of its tile."""
    cdef int64_t t, n, e
    with nogil:
        for t in range(begin.shape[0] - 1):
            e = begin[t]
            for n in range(first[t], first[t + 1]):
                piece_begin[n] = e
                piece_ordinal[n] = <int32_t> t
                e = (e // columns + 1) * columns
        piece_begin[first[begin.shape[0] - 1]] = begin[begin.shape[0] - 1]


def fill_linear_shards(const int64_t[::1] shape not None, const int64_t[::1] piece_begin not None,
                       const int32_t[::1] piece_ordinal not None, const int32_t[::1] device not None, int64_t itemsize,
                       int32_t[::1] tile not None, int64_t[:, ::1] start not None, int64_t[:, ::1] end not None,
                       int64_t[::1] size not None, int64_t[::1] offset not None, int64_t[::1] tile_bytes not None):
    """Fill the shard table of a linear tensor: one shard per row piece. `end` is both the logical and physical end."""
    cdef int64_t rank = shape.shape[0], n, k, row, last = rank - 1, columns = shape[rank - 1], filled = 0
    cdef int64_t at[MAX_RANK]
    cdef int64_t index
    with nogil:
        for n in range(tile.shape[0]):
            index = piece_begin[n]
            row = index // columns
            at[last] = index % columns
            for k in range(last - 1, -1, -1):
                at[k] = row % shape[k]
                row //= shape[k]
            for k in range(rank):
                start[n, k] = at[k]
                end[n, k] = at[k] + 1
            end[n, last] = at[last] + piece_begin[n + 1] - index
            tile[n] = device[piece_ordinal[n]]
            size[n] = (piece_begin[n + 1] - index) * itemsize
            if n == 0 or piece_ordinal[n] != piece_ordinal[n - 1]:
                filled = 0
            offset[n] = filled
            filled += size[n]
            tile_bytes[tile[n]] = filled
