"""Digits of an element order: coordinates to offsets and back, spans of boxes, and what boxes leave uncovered.

A digit table is (digits, 3) int64: axis, divisor, count, slowest first; count 0 stands for the rest of the axis' width.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t


cdef int load_digits(const int64_t* table, int n, const int64_t* widths, Digit* digits) noexcept nogil:
    """Counts and strides for one shard's widths. Digits that count to one are left out; returns how many are left."""
    cdef int k, m = 0
    cdef int64_t count, stride = 1
    cdef Digit swap
    for k in range(n - 1, -1, -1):
        count = table[3 * k + 2]
        if count == 0:
            count = widths[table[3 * k]] // table[3 * k + 1]
        if count != 1:
            digits[m] = Digit(<int> table[3 * k], table[3 * k + 1], count, stride)
            m += 1
        stride *= count
    for k in range(m // 2):
        swap = digits[k]
        digits[k] = digits[m - 1 - k]
        digits[m - 1 - k] = swap
    return m


cdef inline const int64_t* first(const int64_t[:, ::1] table) noexcept nogil:
    return &table[0, 0] if table.shape[0] else NULL


def fill_offsets(const int64_t[:, ::1] table not None, const int64_t[::1] widths not None, int64_t itemsize,
                 const int64_t[:, ::1] coordinates not None, int64_t[::1] out not None):
    """Byte offsets of coordinates (n, rank). Returns -1, or the first row that lies outside the widths."""
    cdef Digit digits[MAX_DIGITS]
    cdef int n, k, rank = <int> coordinates.shape[1]
    cdef int64_t i, total
    with nogil:
        n = load_digits(first(table), <int> table.shape[0], &widths[0] if rank else NULL, digits)
        for i in range(coordinates.shape[0]):
            for k in range(rank):
                if <uint64_t> coordinates[i, k] >= <uint64_t> widths[k]:
                    with gil:
                        return i
            total = 0
            for k in range(n):
                total += coordinates[i, digits[k].axis] // digits[k].divisor % digits[k].count * digits[k].stride
            out[i] = total * itemsize
    return -1


def fill_coordinates(const int64_t[:, ::1] table not None, const int64_t[::1] widths not None, int64_t itemsize,
                     const int64_t[::1] offsets not None, int64_t size, int64_t[:, ::1] out not None):
    """Coordinates (n, rank) of byte offsets. Returns -1, or the first offset that is no element's."""
    cdef Digit digits[MAX_DIGITS]
    cdef int n, k, rank = <int> out.shape[1]
    cdef int64_t i, value
    with nogil:
        n = load_digits(first(table), <int> table.shape[0], &widths[0] if rank else NULL, digits)
        for i in range(offsets.shape[0]):
            value = offsets[i]
            if <uint64_t> value >= <uint64_t> size or value % itemsize:
                with gil:
                    return i
            value = value // itemsize
            for k in range(rank):
                out[i, k] = 0
            for k in range(n - 1, -1, -1):
                out[i, digits[k].axis] += value % digits[k].count * digits[k].divisor
                value = value // digits[k].count
    return -1


# --- boxes -----------------------------------------------------------------------------------------------------------

# Receives the covered spans of boxes in ascending order, joins what touches, and keeps the spans or the gaps.
cdef struct Spans:
    bint gaps
    int64_t begin, end      # spans: the pending one; gaps: covered up to `end`
    int64_t count, itemsize
    int64_t tile
    int64_t* out            # (rows, 2), or NULL to count
    int32_t* tiles

cdef struct Box:
    int digits
    int rank
    Digit digit[MAX_DIGITS]
    int64_t low[MAX_RANK]   # the box, half-open, in coordinates of the shard
    int64_t high[MAX_RANK]
    int64_t at[MAX_RANK]


cdef inline void put(Spans* s, int64_t begin, int64_t end) noexcept nogil:
    if s.out != NULL:
        s.out[2 * s.count] = begin * s.itemsize
        s.out[2 * s.count + 1] = (end - begin) * s.itemsize
        if s.tiles != NULL:
            s.tiles[s.count] = <int32_t> s.tile
    s.count += 1


cdef inline void cover(Spans* s, int64_t begin, int64_t end) noexcept nogil:
    if begin == s.end:
        s.end = end
        return
    if s.gaps:
        put(s, s.end, begin)
    elif s.begin < s.end:
        put(s, s.begin, s.end)
    s.begin = begin
    s.end = end


cdef void cover_box(Box* box, int level, int64_t offset, Spans* s) noexcept nogil:
    """Cover what the digits from `level` on reach of the box; whole blocks at once."""
    cdef int k, axis
    cdef bint whole = True
    cdef int64_t size = 1, v, at, low, high
    cdef Digit* d
    # The interval that the remaining digits reach, axis by axis, against the box.
    cdef int64_t far[MAX_RANK]
    for k in range(box.rank):
        far[k] = box.at[k]
    for k in range(level, box.digits):
        far[box.digit[k].axis] += box.digit[k].divisor * (box.digit[k].count - 1)
        size *= box.digit[k].count
    for k in range(box.rank):
        if far[k] < box.low[k] or box.at[k] >= box.high[k]:
            return
        if box.at[k] < box.low[k] or far[k] >= box.high[k]:
            whole = False
    if whole:
        cover(s, offset, offset + size)
        return
    d = &box.digit[level]
    axis = d.axis
    at = box.at[axis]
    if level == box.digits - 1:     # the fastest digit steps by one coordinate
        low = max(box.low[axis] - at, 0)
        high = min(box.high[axis] - at, d.count)
        cover(s, offset + low, offset + high)
        return
    for v in range(d.count):
        box.at[axis] = at + v * d.divisor
        cover_box(box, level + 1, offset + v * d.stride, s)
    box.at[axis] = at


cdef void load_box(Box* box, const int64_t[:, ::1] table, const int64_t* widths, int rank) noexcept nogil:
    cdef int k
    box.rank = rank
    box.digits = load_digits(first(table), <int> table.shape[0], widths, box.digit)
    for k in range(rank):
        box.at[k] = 0


def fill_spans(const int64_t[:, ::1] table not None, const int64_t[::1] widths not None, int64_t itemsize,
               const int64_t[::1] low not None, const int64_t[::1] high not None, int64_t[:, ::1] out):
    """The maximal byte spans (offset, bytes) of a nonempty box, ascending. Returns their number; `out` None counts."""
    cdef Box box
    cdef Spans s = Spans(False, 0, 0, 0, itemsize, 0, NULL, NULL)
    cdef int k, rank = <int> widths.shape[0]
    if out is not None and out.shape[0]:
        s.out = &out[0, 0]
    with nogil:
        load_box(&box, table, &widths[0] if rank else NULL, rank)
        for k in range(rank):
            box.low[k] = low[k]
            box.high[k] = high[k]
        cover_box(&box, 0, 0, &s)
        put(&s, s.begin, s.end)
    return s.count


def fill_gaps(const int64_t[:, ::1] table not None, const int32_t[::1] tile not None,
              const int64_t[:, ::1] widths not None, const int64_t[:, ::1] low not None,
              const int64_t[:, ::1] high not None, int64_t itemsize, int32_t[::1] tiles, int64_t[:, ::1] out):
    """The byte spans of tiles' buffers that no shard's box covers, maximal, by tile and offset.

    Rows of `tile`, `widths`, `low` and `high` are shards in buffer order, each tile's together. Returns the number of
    spans; `tiles` and `out` None count.
    """
    cdef Box box
    cdef Spans s = Spans(True, 0, 0, 0, itemsize, 0, NULL, NULL)
    cdef int64_t i, base = 0, size
    cdef int k, rank = <int> widths.shape[1]
    cdef bint empty
    if out is not None and out.shape[0]:
        s.out = &out[0, 0]
        s.tiles = &tiles[0]
    with nogil:
        for i in range(tile.shape[0]):
            if i == 0 or tile[i] != s.tile:
                if s.end < base:
                    put(&s, s.end, base)
                base = 0
                s.begin = s.end = 0
                s.tile = tile[i]
            size = 1
            empty = False
            for k in range(rank):
                size *= widths[i, k]
                box.low[k] = low[i, k]
                box.high[k] = high[i, k]
                empty = empty or low[i, k] >= high[i, k]
            if size and not empty:
                load_box(&box, table, &widths[i, 0] if rank else NULL, rank)
                cover_box(&box, 0, base, &s)
            base += size
        if s.end < base:
            put(&s, s.end, base)
    return s.count
