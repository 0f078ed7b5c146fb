"""Who owns what: the partition coordinates of tiles, and shard tables."""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

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


# --- shard tables ----------------------------------------------------------------------------------------------------
#
# A table's columns lie in one block of 64-bit words, in this order (`tile` is 32-bit, so it is last): one allocation,
# and one buffer that crosses the border. `ownership.enumerate_shards` makes the same cuts.

cdef struct Table:
    int64_t count, rank
    int64_t* start          # (count, rank)
    int64_t* logical_end    # (count, rank)
    int64_t* physical_end   # (count, rank)
    int64_t* bytes          # (count)
    int64_t* offset         # (count)
    int64_t* tile_bytes     # (device tiles)
    int32_t* tile           # (count)

cdef enum:
    BLOCK = 128             # rows; at rank 4 their columns stay in the fastest cache while axis after axis fills them


cdef Table cut_block(int64_t* words, int64_t count, int64_t rank, int64_t device_tiles) noexcept nogil:
    cdef Table t
    t.count = count
    t.rank = rank
    t.start = words
    t.logical_end = t.start + count * rank
    t.physical_end = t.logical_end + count * rank
    t.bytes = t.physical_end + count * rank
    t.offset = t.bytes + count
    t.tile_bytes = t.offset + count
    t.tile = <int32_t*> (t.tile_bytes + device_tiles)
    return t


cdef void fill_tiles(Table* t, const int32_t[::1] device) noexcept nogil:
    """The columns that owner maps decide, for one shard per tile; `device` is None for the identity."""
    cdef int64_t i
    if device is None:
        for i in range(t.count):
            t.tile[i] = <int32_t> i
        memcpy(t.tile_bytes, t.bytes, t.count * sizeof(int64_t))
        return
    for i in range(t.count):
        t.tile[i] = device[i]
        t.tile_bytes[device[i]] = t.bytes[i]


# One axis of the table: its partition moves every `stride` tiles.
cdef struct Wheel:
    int64_t stride, partitions
    int64_t left            # rows until it moves
    int64_t at              # the partition
    const int64_t* start    # of every partition
    const int64_t* logical_end
    const int64_t* physical_end


cdef inline void turn(Wheel* w, int64_t partitions) noexcept nogil:
    w.left = w.stride
    w.at += partitions
    if w.at == w.partitions:
        w.at = 0


cdef void fill_axis(Table* t, int64_t axis, Wheel* w, int64_t row, int64_t end) noexcept nogil:
    """One axis' columns of some rows, and its part in their sizes."""
    cdef int64_t rank = t.rank, i, run, start, logical_end, physical_end
    cdef int64_t* to_start = t.start + axis
    cdef int64_t* to_logical = t.logical_end + axis
    cdef int64_t* to_physical = t.physical_end + axis
    cdef int64_t* bytes = t.bytes
    while row < end:
        if w.stride == 1:       # a run of partitions, of one row each
            run = min(w.partitions - w.at, end - row)
            for i in range(run):
                start = w.start[w.at + i]
                physical_end = w.physical_end[w.at + i]
                to_start[(row + i) * rank] = start
                to_logical[(row + i) * rank] = w.logical_end[w.at + i]
                to_physical[(row + i) * rank] = physical_end
                bytes[row + i] *= physical_end - start
            turn(w, run)
        else:                   # a run of rows of one partition
            run = min(w.left, end - row)
            start = w.start[w.at]
            logical_end = w.logical_end[w.at]
            physical_end = w.physical_end[w.at]
            for i in range(row, row + run):
                to_start[i * rank] = start
                to_logical[i * rank] = logical_end
                to_physical[i * rank] = physical_end
                bytes[i] *= physical_end - start
            w.left -= run
            if w.left == 0:
                turn(w, 1)
        row += run


def fill_shards(const int64_t[:, ::1] axes not None, const int64_t[:, ::1] bounds not None,
                const int32_t[::1] device, int64_t itemsize, int64_t count, int64_t device_tiles,
                int64_t[::1] words not None):
    """Fill the shard table of an axis-tiled tensor: one shard per tile, by ordinal.

    `axes` is (rank, 3): tile stride, partitions, and the axis' first column of `bounds`, which is (3, sum of
    partitions): start, logical end, physical end. `device` names the device tile of each ordinal, None the same one.
    """
    cdef Table t
    cdef Wheel wheel[MAX_RANK]
    cdef int64_t rank = axes.shape[0], row = 0, end, i, k
    with nogil:
        t = cut_block(&words[0], count, rank, device_tiles)
        for k in range(rank):
            wheel[k] = Wheel(axes[k, 0], axes[k, 1], axes[k, 0], 0,
                             &bounds[0, axes[k, 2]], &bounds[1, axes[k, 2]], &bounds[2, axes[k, 2]])
            if wheel[k].partitions == 1:
                wheel[k].stride = wheel[k].left = count + 1
        while row < count:
            end = min(row + BLOCK, count)
            for i in range(row, end):
                t.bytes[i] = itemsize
            for k in range(rank):
                fill_axis(&t, k, &wheel[k], row, end)
            row = end
        memset(t.offset, 0, (count + device_tiles) * sizeof(int64_t))   # and the tile bytes after it
        fill_tiles(&t, device)


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


cdef void fill_carried(Table* t, int64_t axis, int64_t extent, int64_t* at, int64_t* carry, int64_t row,
                       int64_t end) noexcept nogil:
    """An outer axis' columns of some pieces: it steps where `carry` is 1. Leaves the carries of the axis before it."""
    cdef int64_t rank = t.rank, i, here = at[0]
    cdef bint full
    cdef int64_t* to_start = t.start + axis
    cdef int64_t* to_logical = t.logical_end + axis
    cdef int64_t* to_physical = t.physical_end + axis
    for i in range(row, end):
        here += carry[i - row]
        full = here == extent
        here = 0 if full else here
        carry[i - row] = full
        to_start[i * rank] = here
        to_logical[i * rank] = here + 1
        to_physical[i * rank] = here + 1
    at[0] = here


def fill_linear_shards(const int64_t[::1] shape not None, const int64_t[::1] piece_begin not None,
                       const int32_t[::1] piece_ordinal not None, const int32_t[::1] device, int64_t itemsize,
                       int64_t device_tiles, int64_t[::1] words not None):
    """Fill the shard table of a linear tensor: one shard per row piece, which is not padded.

    `device` names the device tile of each ordinal, None the same one.
    """
    cdef int64_t rank = shape.shape[0], last = rank - 1, columns = shape[last], row = 0, end, n, k, size
    cdef int64_t column = 0, filled = 0
    cdef int32_t ordinal, before = -1
    cdef int64_t at[MAX_RANK]
    cdef int64_t carry[BLOCK]
    cdef Table t
    with nogil:
        t = cut_block(&words[0], piece_ordinal.shape[0], rank, device_tiles)
        memset(t.tile_bytes, 0, device_tiles * sizeof(int64_t))
        for k in range(rank):
            at[k] = 0
        # No branch: where rows end inside of tiles' intervals, and where intervals end inside of rows, has no pattern.
        while row < t.count:
            end = min(row + BLOCK, t.count)
            for n in range(row, end):
                size = piece_begin[n + 1] - piece_begin[n]
                ordinal = piece_ordinal[n]
                # Pieces follow each other: each begins where the one before ended, or in the next row.
                carry[n - row] = column == columns
                column = 0 if column == columns else column
                t.start[n * rank + last] = column
                column += size
                t.logical_end[n * rank + last] = column
                t.physical_end[n * rank + last] = column
                filled = filled if ordinal == before else 0
                before = ordinal
                t.bytes[n] = size * itemsize
                t.offset[n] = filled
                filled += size * itemsize
                if device is not None:
                    ordinal = device[ordinal]
                t.tile[n] = ordinal
                t.tile_bytes[ordinal] = filled
            for k in range(last - 1, -1, -1):
                fill_carried(&t, k, shape[k], &at[k], carry, row, end)
            row = end
