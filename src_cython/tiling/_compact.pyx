"""Transfer lists to strided rows, and back.

A list is walked twice: once to mark where its rows start, and once to fill them. Both go by stretches of transfers, so
that what is simple in a stretch is done at once. Steps are taken and added modulo 2^64, so that any int64 comes back.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    STRETCH = 128       # transfers


cdef inline int64_t add(int64_t a, int64_t b) noexcept nogil:
    return <int64_t> (<uint64_t> a + <uint64_t> b)


cdef inline int64_t subtract(int64_t a, int64_t b) noexcept nogil:
    return <int64_t> (<uint64_t> a - <uint64_t> b)


cdef void append(const List* x, int64_t i, int64_t n, List* out) noexcept nogil:
    """Copy n transfers, from i on, to the end of another list."""
    cdef int64_t j, at = x.start[i], m = x.start[i + n] - at
    memcpy(out.tile + out.n, x.tile + i, n * sizeof(int32_t))
    memcpy(out.offset + out.n, x.offset + i, n * sizeof(int64_t))
    memcpy(out.size + out.n, x.size + i, n * sizeof(int64_t))
    for j in range(n):
        out.start[out.n + j] = x.start[i + j] - at + out.m
    memcpy(out.to_tile + out.m, x.to_tile + at, m * sizeof(int32_t))
    memcpy(out.to_offset + out.m, x.to_offset + at, m * sizeof(int64_t))
    out.n += n
    out.m += m


# --- a list to rows --------------------------------------------------------------------------------------------------


cdef bint joins(const List* x, int64_t i, bint single) noexcept nogil:
    """Whether transfer i joins the row of transfer i - 1: at any step if that one starts it, else at the row's own."""
    cdef int64_t at = x.start[i], k = x.start[i + 1] - at, e, source, destination
    if at - x.start[i - 1] != k or x.tile[i] != x.tile[i - 1] or x.size[i] != x.size[i - 1]:
        return False
    source = subtract(x.offset[i], x.offset[i - 1])
    if not single and source != subtract(x.offset[i - 1], x.offset[i - 2]):
        return False
    if k == 0:
        return True
    destination = subtract(x.to_offset[at], x.to_offset[at - k])
    if not single and destination != subtract(x.to_offset[at - k], x.to_offset[at - 2 * k]):
        return False
    for e in range(at, at + k):
        if x.to_tile[e] != x.to_tile[e - k] or subtract(x.to_offset[e], x.to_offset[e - k]) != destination:
            return False
    return True


cdef bint ones(const int64_t* start, int64_t n) noexcept nogil:
    """Whether n transfers have one destination each."""
    cdef int64_t i, others = 0
    for i in range(n):
        others |= start[i] ^ (start[0] + i)
    return others == 0 and start[n] == start[0] + n


cdef int64_t mark_ones(const List* x, int64_t begin, int64_t n, uint8_t* single) noexcept nogil:
    """`mark` for a stretch of n transfers that have one destination each, as the two before it; gives the rows.

    What `joins` finds out is taken for all of them at once, and put together without branches: in a list of short rows
    they would be guessed wrong at every row.
    """
    cdef int64_t i, rows = 0, at = x.start[begin]
    cdef uint8_t last = single[begin - 1]
    cdef int32_t tiles[STRETCH]
    cdef int64_t size[STRETCH]
    cdef int64_t bend[STRETCH]
    cdef const int32_t* tile = x.tile + begin
    cdef const int32_t* to_tile = x.to_tile + at
    cdef const int64_t* a = x.size + begin
    cdef const int64_t* o = x.offset + begin
    cdef const int64_t* d = x.to_offset + at
    for i in range(n):
        tiles[i] = (tile[i] ^ tile[i - 1]) | (to_tile[i] ^ to_tile[i - 1])
    for i in range(n):
        size[i] = a[i] ^ a[i - 1]
    for i in range(n):
        bend[i] = (subtract(subtract(o[i], o[i - 1]), subtract(o[i - 1], o[i - 2]))
                   | subtract(subtract(d[i], d[i - 1]), subtract(d[i - 1], d[i - 2])))
    for i in range(n):
        last = ((tiles[i] | size[i]) != 0) | (<uint8_t> (not last) & (bend[i] != 0))
        single[begin + i] = last
        rows += last
    return rows


cdef void mark(const List* x, uint8_t* single, Totals* total) noexcept nogil:
    """Which transfers start a row, for each 1 or 0, and what the rows come to: the greedy rule."""
    cdef int64_t i, begin = 0, n, rows
    while begin < x.n:
        n = min(STRETCH, x.n - begin)
        if begin >= 2 and ones(x.start + begin - 2, n + 2):
            rows = mark_ones(x, begin, n, single)
            total.n += rows
            total.m += rows
        else:
            for i in range(begin, begin + n):
                single[i] = i == 0 or not joins(x, i, single[i - 1])
                total.n += single[i]
                total.m += x.start[i + 1] - x.start[i] if single[i] else 0
        begin += n


cdef inline void take32(int32_t* out, const int32_t* a, const int64_t* first, int64_t rows) noexcept nogil:
    cdef int64_t r
    for r in range(rows):
        out[r] = a[first[r]]


cdef inline void take64(int64_t* out, const int64_t* a, const int64_t* first, int64_t rows) noexcept nogil:
    cdef int64_t r
    for r in range(rows):
        out[r] = a[first[r]]


cdef void take_destinations(const List* x, List* head, const int64_t* first, int64_t rows) noexcept nogil:
    cdef int64_t r, at, k, m = head.m
    for r in range(rows):
        at = x.start[first[r]]
        k = x.start[first[r] + 1] - at
        head.start[head.n + r] = m
        if k == 1:
            head.to_tile[m] = x.to_tile[at]
            head.to_offset[m] = x.to_offset[at]
        else:
            memcpy(head.to_tile + m, x.to_tile + at, k * sizeof(int32_t))
            memcpy(head.to_offset + m, x.to_offset + at, k * sizeof(int64_t))
        m += k
    head.m = m


cdef void take_steps(const List* x, Strided* out, int64_t n, const int64_t* first, int64_t rows) noexcept nogil:
    """Rows n, n + 1, ...: a step leads to the next transfer, or nowhere where that one is the next row's first."""
    cdef int64_t r, i, at, further
    for r in range(rows):
        i = first[r]
        further = i + (first[r + 1] - i > 1)
        at = x.start[i]
        out.source_step[n + r] = subtract(x.offset[further], x.offset[i])
        out.destination_step[n + r] = 0
        if x.start[i + 1] > at:
            out.destination_step[n + r] = subtract(x.to_offset[x.start[further]], x.to_offset[at])


cdef void put_rows(const List* x, Strided* out, const int64_t* first, int64_t rows) noexcept nogil:
    """Rows that start at `first`, but for their counts. The last is single if `first[rows]` is the transfer after it.

    Column after column, which keeps the loops free of branches.
    """
    cdef List* head = &out.head
    cdef int64_t n = head.n
    if first[rows - 1] - first[0] == rows - 1:      # nothing folds, but for the last row perhaps
        append(x, first[0], rows, head)
        memset(out.source_step + n, 0, rows * sizeof(int64_t))
        memset(out.destination_step + n, 0, rows * sizeof(int64_t))
        take_steps(x, out, n + rows - 1, first + rows - 1, 1)
    else:
        take32(head.tile + n, x.tile, first, rows)
        take64(head.offset + n, x.offset, first, rows)
        take64(head.size + n, x.size, first, rows)
        take_destinations(x, head, first, rows)
        take_steps(x, out, n, first, rows)
        head.n += rows


cdef void fold(const List* x, const uint8_t* single, Strided* out) noexcept nogil:
    """The rows that start at the marks, a stretch of transfers after the other."""
    cdef int64_t first[STRETCH + 1]
    cdef int64_t begin = 0, end, i, rows, n, open = 0
    while begin < x.n:
        end = min(begin + STRETCH, x.n)
        rows = 0
        for i in range(begin, end):
            first[rows] = i
            rows += single[i]
        first[rows] = end + (end < x.n and not single[end])     # whether the stretch's last row goes on
        begin = end
        if rows == 0:
            continue
        n = out.head.n
        put_rows(x, out, first, rows)
        if n:
            out.count[n - 1] = first[0] - open
        for i in range(rows - 1):
            out.count[n + i] = first[i + 1] - first[i]
        open = first[rows - 1]
    if x.n:
        out.count[out.head.n - 1] = x.n - open
    out.head.start[out.head.n] = out.head.m


# --- rows to a list --------------------------------------------------------------------------------------------------


cdef inline void repeat_one(const Strided* x, int64_t i, List* out) noexcept nogil:
    """The transfers of row i, which has one destination."""
    cdef const List* head = &x.head
    cdef int64_t j, n = out.n, m = out.m, count = x.count[i], size = head.size[i]
    cdef int64_t source = head.offset[i], destination = head.to_offset[head.start[i]]
    cdef int64_t source_step = x.source_step[i], destination_step = x.destination_step[i]
    cdef int32_t tile = head.tile[i], to_tile = head.to_tile[head.start[i]]
    for j in range(count):
        out.tile[n + j] = tile
        out.offset[n + j] = source
        out.size[n + j] = size
        out.start[n + j] = m + j
        out.to_tile[m + j] = to_tile
        out.to_offset[m + j] = destination
        source = add(source, source_step)
        destination = add(destination, destination_step)
    out.n += count
    out.m += count


cdef void repeat(const Strided* x, int64_t i, List* out) noexcept nogil:
    """The transfers of row i."""
    cdef const List* head = &x.head
    cdef int64_t _, e, at = head.start[i], k = head.start[i + 1] - at
    cdef int64_t source = head.offset[i], further = 0
    cdef int32_t* to_tile
    cdef int64_t* to_offset
    for _ in range(x.count[i]):
        to_tile = out.to_tile + out.m
        to_offset = out.to_offset + out.m
        out.tile[out.n] = head.tile[i]
        out.offset[out.n] = source
        out.size[out.n] = head.size[i]
        out.start[out.n] = out.m
        for e in range(k):
            to_tile[e] = head.to_tile[at + e]
        for e in range(k):
            to_offset[e] = add(head.to_offset[at + e], further)
        source = add(source, x.source_step[i])
        further = add(further, x.destination_step[i])
        out.n += 1
        out.m += k


cdef void unfold(const Strided* x, List* out) noexcept nogil:
    """All transfers of all rows."""
    cdef int64_t begin = 0, end, i, folded
    while begin < x.head.n:
        end = min(begin + STRETCH, x.head.n)
        folded = 0
        for i in range(begin, end):
            folded |= x.count[i] ^ 1
        if not folded:
            append(&x.head, begin, end - begin, out)
        else:
            for i in range(begin, end):
                if x.head.start[i + 1] - x.head.start[i] == 1:
                    repeat_one(x, i, out)
                else:
                    repeat(x, i, out)
        begin = end
    out.start[out.n] = out.m


# --- columns ---------------------------------------------------------------------------------------------------------


# Read-only columns are taken too: the only ones that are filled are new. Empty ones have an address as well.

@cython.boundscheck(False)
cdef int32_t* at32(const int32_t[::1] a) noexcept:
    return <int32_t*> &a[0]


@cython.boundscheck(False)
cdef int64_t* at64(const int64_t[::1] a) noexcept:
    return <int64_t*> &a[0]


cdef List point(tuple columns):
    """A list's six columns as pointers, all of it."""
    cdef List x
    tile, offset, size, start, to_tile, to_offset = columns
    x.tile = at32(tile)
    x.offset = at64(offset)
    x.size = at64(size)
    x.start = at64(start)
    x.to_tile = at32(to_tile)
    x.to_offset = at64(to_offset)
    x.n = len(tile)
    x.m = len(to_tile)
    return x


cdef Strided point_strided(tuple head, tuple repeats):
    cdef Strided x
    x.head = point(head)
    count, source_step, destination_step = repeats
    x.count = at64(count)
    x.source_step = at64(source_step)
    x.destination_step = at64(destination_step)
    return x


def find_descent(const int64_t[::1] start not None):
    """The first place where `start` falls, or -1."""
    cdef int64_t i = 1, falls = 0
    with nogil:
        for i in range(1, start.shape[0]):
            falls |= start[i] < start[i - 1]
        if falls:
            i = 1
            while start[i] >= start[i - 1]:
                i += 1
    return i if falls else -1


def mark_rows(tuple transfers not None, uint8_t[::1] single not None):
    """Rows and destinations that a list of six columns folds to; `single` becomes 1 where a row starts, else 0."""
    cdef List x = point(transfers)
    cdef Totals total = Totals(0, 0)
    if x.n:
        with nogil:
            mark(&x, &single[0], &total)
    return total.n, total.m


def fill_rows(tuple transfers not None, const uint8_t[::1] single not None, tuple head not None,
              tuple repeats not None):
    """Fill columns of exactly the lengths that `mark_rows` gave: the rows' first transfers, their counts and steps."""
    cdef List x = point(transfers)
    cdef Strided out = point_strided(head, repeats)
    out.head.n = out.head.m = 0
    if x.n:
        with nogil:
            fold(&x, &single[0], &out)
    else:
        out.head.start[0] = 0


def count_transfers(const int64_t[::1] start not None, const int64_t[::1] count not None):
    """Least and largest count of all rows (1 without rows), and transfers and destinations that they unfold to.

    The sums are exact where rows and counts are below 2^31, and the destinations where the transfers are, too.
    """
    cdef int64_t i, least = 1, most = 1
    cdef uint64_t n = 0, m = 0
    with nogil:
        for i in range(count.shape[0]):
            least = min(least, count[i])
            most = max(most, count[i])
            n += <uint64_t> count[i]
            m += <uint64_t> count[i] * <uint64_t> (start[i + 1] - start[i])
    return least, most, n, m


def fill_transfers(tuple head not None, tuple repeats not None, tuple transfers not None):
    """Fill the six columns of a list, of exactly the counted lengths."""
    cdef Strided x = point_strided(head, repeats)
    cdef List out = point(transfers)
    with nogil:
        out.n = out.m = 0
        unfold(&x, &out)
