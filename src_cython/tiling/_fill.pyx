"""Columns of the copies whose runs are regular: every overlap of the innermost axis is one run.

That is so for row-major sides cut along their rows, for panels whose lanes both sides keep whole, and for linear sides;
nearly all that a compiler retiles. Nothing is looked for there: the count says how long the columns are, and the loops
add and store. Other copies are walked (`_copy`).
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from ._columns cimport CUT, open_columns, put_local
from ._count cimport DONE, NO_MEMORY, Analysis, Overlap, outer_overlaps, overlap_of, tile_of, width
from ._sides cimport SideData


# --- what is regular -------------------------------------------------------------------------------------------------


cdef bint one_digit(const SideData* s, int a) noexcept nogil:
    """Whether all of an axis is one digit (or none, where it is one element wide)."""
    cdef int k, found = 0
    for k in range(s.digits):
        if s.axis[k] == a:
            found += 1
            if s.divisor[k] != 1 or s.count[k]:
                return False
    return found <= 1


cdef bint blocks_and_rest(const SideData* s, int a) noexcept nogil:
    """Whether an axis is the fastest digit and nothing but its rest above it."""
    cdef int k
    for k in range(1, s.digits):
        if s.axis[k] == a and s.count[k]:
            return False
    return True


cdef bint is_row_major(const SideData* s) noexcept nogil:
    """Whether a side's elements stand in the order of their coordinates."""
    cdef int k
    for k in range(s.digits):
        if s.divisor[k] != 1 or s.count[k] or (k and s.axis[k] >= s.axis[k - 1]):
            return False
    return True


cdef bint is_regular(const Work* w, int* inner, int64_t* unit) noexcept nogil:
    """Whether a decided, axis-tiled copy has one run per overlap of an inner axis (set), at every outer coordinate."""
    cdef const SideData* s = w.s
    cdef const SideData* d = w.d
    cdef int k, a
    cdef int64_t n, longest = 0
    cdef const Overlap* o
    if s.replicas > 1 or s.digits == 0 or d.digits == 0 or s.axis[0] != d.axis[0] or s.count[0] != d.count[0]:
        return False
    if s.divisor[0] != 1 or d.divisor[0] != 1:
        return False
    for k in range(w.links):
        if w.source_step[k] != w.destination_step[k] or w.source_step[k] > (s.count[0] != 0):
            return False
    a = inner[0] = s.axis[0]
    unit[0] = 1
    if s.count[0]:
        # Panels: whole blocks of the fastest axis, runs of them along the second.
        if s.digits < 2 or d.digits < 2 or s.axis[1] == a or s.axis[1] != d.axis[1]:
            return False
        if not blocks_and_rest(s, a) or not blocks_and_rest(d, a):
            return False
        unit[0] = s.count[0]
        for n in range(w.first[a], w.first[a + 1]):
            o = &w.overlaps[n]
            if o.x0 % unit[0] or o.x1 % unit[0] or o.y0 % unit[0]:
                return False
        inner[0] = s.axis[1]
    for k in range(s.rank):
        if (k != a or unit[0] == 1) and not (one_digit(s, k) and one_digit(d, k)):
            return False
    for n in range(w.first[inner[0]], w.first[inner[0] + 1]):
        longest = max(longest, w.overlaps[n].x1 - w.overlaps[n].x0)
    return longest * unit[0] * s.itemsize <= CUT


# --- axis-tiled ------------------------------------------------------------------------------------------------------


cdef inline int64_t put_ends(Columns* c, int64_t m, const int32_t* tiles, int64_t replicas, int32_t without,
                             bint is_in, int64_t destination) noexcept nogil:
    """The tiles of one multicast, all at one offset; `without` is left out where it `is_in`. Returns the next row."""
    cdef int64_t e
    cdef int32_t* tile = c.destination_tile + m
    cdef int64_t* offset = c.destination_offset + m
    if is_in:
        for e in range(replicas):
            if tiles[e] != without:
                tile[0] = tiles[e]
                offset[0] = destination
                tile += 1
                offset += 1
        return m + replicas - 1
    memcpy(tile, tiles, replicas * sizeof(int32_t))
    for e in range(replicas):
        offset[e] = destination
    return m + replicas


cdef inline void put_pieces(Columns* c, const Piece* p, const Piece* end, int32_t own, int64_t source, int64_t rows,
                            const int32_t* tiles) noexcept nogil:
    """Runs of the inner axis, each to one other tile."""
    cdef int64_t n = c.transfers
    cdef int32_t* source_tile = c.source_tile
    cdef int64_t* source_offset = c.source_offset
    cdef int64_t* size = c.size
    cdef int64_t* start = c.start
    cdef int32_t* destination_tile = c.destination_tile
    cdef int64_t* destination_offset = c.destination_offset
    while p < end:
        source_tile[n] = own
        source_offset[n] = source + p.source
        size[n] = p.size
        start[n] = n
        destination_tile[n] = tiles[p.group]
        destination_offset[n] = p.destination + p.wide * rows
        n += 1
        p += 1
    c.transfers = n


cdef bint put_singles(Fill* f, int64_t steps, int64_t source, int64_t step, int64_t group, int64_t rows,
                      int64_t weight, int64_t own) noexcept nogil:
    """The inner axis' runs, each to one other tile, `steps` times over; run `own` stays on this tile.

    `source` moves by `step`, and `rows` by `weight`.
    """
    cdef Columns* c = f.out
    cdef int64_t _q
    cdef const int32_t* tiles = f.tile_of_class + group
    cdef const Piece* first = f.pieces + f.row[f.inner]
    cdef const Piece* last = f.pieces + f.end[f.inner]
    cdef const Piece* mine = f.pieces + own
    if c.transfers + steps * (last - first - (own >= 0)) > c.capacity:
        return False
    for _q in range(steps):
        if own >= 0:
            put_pieces(c, first, mine, f.tile, source, rows, tiles)
            if not put_local(c, f.tile, source + mine.source, mine.size, mine.destination + mine.wide * rows):
                return False
            put_pieces(c, mine + 1, last, f.tile, source, rows, tiles)
        else:
            put_pieces(c, first, last, f.tile, source, rows, tiles)
        source += step
        rows += weight
    c.destinations = c.transfers
    return True


cdef bint put_multicasts(Fill* f, int64_t steps, int64_t source, int64_t step, int64_t group, int64_t rows,
                         int64_t weight, int64_t own) noexcept nogil:
    """As `put_singles`, where every destination class has several tiles."""
    cdef Columns* c = f.out
    cdef int64_t _q, k, n, replicas = f.w.d.replicas, destination
    cdef const Piece* p
    if c.transfers + steps * (f.end[f.inner] - f.row[f.inner]) > c.capacity:
        return False
    for _q in range(steps):
        for k in range(f.row[f.inner], f.end[f.inner]):
            if c.destinations + replicas > c.ends + (k == own):
                return False
            p = &f.pieces[k]
            destination = p.destination + p.wide * rows
            if k == own and not put_local(c, f.tile, source + p.source, p.size, destination):
                return False
            n = c.transfers
            c.source_tile[n] = f.tile
            c.source_offset[n] = source + p.source
            c.size[n] = p.size
            c.start[n] = c.destinations
            c.transfers = n + 1
            c.destinations = put_ends(c, c.destinations, f.tile_of_class + (group + p.group) * replicas, replicas,
                                      f.tile, k == own, destination)
        source += step
        rows += weight
    return True


cdef bint put(Fill* f, int64_t steps, int64_t source, int64_t step, int64_t group, int64_t rows,
              int64_t weight) noexcept nogil:
    """The runs of some steps of the innermost loop: all the inner axis' overlaps. False where columns are too short.

    `rows` is how many of the inner axis' rows stand before in the destination; a row is as wide as its partition.
    """
    cdef int64_t own = f.own if group == f.own_group else -1
    if f.w.d.replicas == 1:
        return put_singles(f, steps, source, step, group, rows, weight, own)
    return put_multicasts(f, steps, source, step, group, rows, weight, own)


cdef int64_t make_pattern(Fill* f, int axis, int64_t block, int64_t step) noexcept nogil:
    """Lay out the runs of the current partitions of the innermost loop's axis and the inner axis.

    Returns their first row.
    """
    cdef Pattern* t = &f.pattern
    cdef int64_t n, q, k, row = t.made
    cdef const Overlap* o
    cdef const Piece* p
    for n in range(f.row[axis], f.end[axis]):
        o = &f.w.overlaps[n]
        for q in range(o.x0 // block, o.x1 // block):
            for k in range(f.row[f.inner], f.end[f.inner]):
                p = &f.pieces[k]
                t.source[row] = p.source + q * step
                t.size[row] = p.size
                t.place[row] = p.destination + p.wide * (q - (o.x0 - o.y0) // block)
                t.wide[row] = <uint32_t> (p.wide * (width(f.w.d, axis, o.destination) // block))
                t.group[row] = <int32_t> (p.group + o.destination * f.w.class_stride[axis])
                row += 1
    n = t.made
    t.made = row
    return n


cdef void put_pattern_rows(Fill* f, int64_t first, int64_t last, int64_t source, int64_t group,
                           uint32_t rows) noexcept nogil:
    """Rows first..last of the patterns, column by column: long loops of one thing each."""
    cdef Columns* c = f.out
    cdef int64_t k, n = c.transfers, count = last - first
    cdef int32_t own = f.tile
    cdef int32_t* small = c.source_tile + n
    cdef int64_t* large = c.source_offset + n
    cdef const int64_t* from_ = f.pattern.source + first
    cdef const uint32_t* wide = f.pattern.wide + first
    cdef const int32_t* groups = f.pattern.group + first
    cdef const int32_t* tiles = f.tile_of_class + group
    for k in range(count):
        small[k] = own
    for k in range(count):
        large[k] = from_[k] + source
    memcpy(c.size + n, f.pattern.size + first, count * sizeof(int64_t))
    large = c.start + n
    for k in range(count):
        large[k] = n + k
    small = c.destination_tile + n
    for k in range(count):
        small[k] = tiles[groups[k]]
    large = c.destination_offset + n
    from_ = f.pattern.place + first
    for k in range(count):
        large[k] = from_[k] + <int64_t> (<uint64_t> wide[k] * rows)
    c.transfers = n + count
    c.destinations = c.transfers


cdef bint put_pattern(Fill* f, int axis, int64_t block, int64_t step, int64_t source, int64_t group,
                      int64_t rows) noexcept nogil:
    """The innermost loop and the inner axis at once. False where the columns are too short.

    `rows` is what the slower loops come to in the destination, in wholes of the innermost loop.
    """
    cdef Columns* c = f.out
    cdef int64_t* begin = &f.pattern.begin[f.part[axis] * f.w.s.parts[f.inner] + f.part[f.inner]]
    cdef int64_t n, first, last, each = f.end[f.inner] - f.row[f.inner], at, own = 0, _k
    cdef const Overlap* o
    if begin[0] < 0:
        begin[0] = make_pattern(f, axis, block, step)
    first = last = begin[0]
    for n in range(f.row[axis], f.end[axis]):
        o = &f.w.overlaps[n]
        if n == f.own_loop and group == f.own_group and f.own >= 0:
            own = o.x1 // block - o.x0 // block
            at = last + f.own - f.row[f.inner]
        last += (o.x1 // block - o.x0 // block) * each
    if c.transfers + last - first > c.capacity + own:
        return False
    for _k in range(own):
        put_pattern_rows(f, first, at, source, group, <uint32_t> rows)
        if not put_local(c, f.tile, f.pattern.source[at] + source, f.pattern.size[at],
                         f.pattern.place[at] + f.pattern.wide[at] * rows):
            return False
        first = at + 1
        at += each
    put_pattern_rows(f, first, last, source, group, <uint32_t> rows)
    return True


cdef int open_pattern(Fill* f) noexcept nogil:
    """Use patterns where enough shards share them (they take at most a seventh of the list's memory then), and where
    their rows are many between the runs that stay on the tile.

    The innermost loop must be the fastest of the destination's outer digits too.
    """
    cdef const SideData* s = f.w.s
    cdef const SideData* d = f.w.d
    cdef int64_t shared = 1, rows = 0, n, k
    cdef int a, axis
    f.pattern.memory = NULL
    if d.replicas > 1 or s.digits <= f.first or d.digits <= f.first:
        return DONE
    axis = s.axis[f.first]
    if axis == f.inner or d.axis[f.first] != axis:
        return DONE
    for a in range(s.rank):
        if a != axis and a != f.inner:
            shared *= f.w.first[a + 1] - f.w.first[a]
    n = d.itemsize
    for a in range(d.rank):
        n *= width(d, a, 0)     # the first partition is as wide as any
    k = f.w.first[f.inner + 1] - f.w.first[f.inner]
    if shared < 5 or k < 16 * s.parts[f.inner] or n >= <int64_t> 1 << 32:
        return DONE
    for n in range(f.w.first[axis], f.w.first[axis + 1]):
        rows += f.w.overlaps[n].x1 // s.divisor[f.first] - f.w.overlaps[n].x0 // s.divisor[f.first]
    rows *= f.w.first[f.inner + 1] - f.w.first[f.inner]
    k = s.parts[axis] * s.parts[f.inner]
    f.pattern.memory = malloc(k * sizeof(int64_t) + rows * (3 * sizeof(int64_t) + 2 * sizeof(int32_t)) + 8)
    if f.pattern.memory == NULL:
        return NO_MEMORY
    f.pattern.begin = <int64_t*> f.pattern.memory
    f.pattern.source = f.pattern.begin + k
    f.pattern.size = f.pattern.source + rows
    f.pattern.place = f.pattern.size + rows
    f.pattern.wide = <uint32_t*> (f.pattern.place + rows)
    f.pattern.group = <int32_t*> (f.pattern.wide + rows)
    f.pattern.made = 0
    memset(f.pattern.begin, 0xff, k * sizeof(int64_t))
    return DONE


cdef bint loop(Fill* f, int level, int64_t source, int64_t group) noexcept nogil:
    """Loop over the source's digits from `level` down to the inner ones, slowest first."""
    cdef const SideData* s = f.w.s
    cdef const SideData* d = f.w.d
    cdef const Overlap* o
    cdef int a
    cdef int64_t n, q, block, rows, weight, step, inside
    if level < f.first:
        rows = rows_before(f, -1, &weight)
        return put(f, 1, source, 0, group, rows, 0)
    a = s.axis[level]
    block = s.divisor[level]
    step = f.stride[level]
    if level == f.first and f.pattern.memory != NULL:
        f.count[a] = 1
        f.at[a] = 0
        return put_pattern(f, a, block, step, source, group, rows_before(f, -1, &weight))
    for n in range(f.row[a], f.end[a]):
        o = &f.w.overlaps[n]
        f.count[a] = width(d, a, o.destination) // block
        f.at[a] = o.y0 // block
        inside = group + o.destination * f.w.class_stride[a]
        if level > f.first:
            for q in range(o.x0 // block, o.x1 // block):
                if not loop(f, level - 1, source + q * step, inside):
                    return False
                f.at[a] += 1
            continue
        rows = rows_before(f, a, &weight)
        q = o.x0 // block
        if not put(f, o.x1 // block - q, source + q * step, step, inside, rows, weight):
            return False
    return True


cdef int64_t rows_before(const Fill* f, int axis, int64_t* weight) noexcept nogil:
    """The destination's outer digits as one number, and what one step of an axis adds to it."""
    cdef int64_t rows = 0
    cdef int k, a
    weight[0] = 1
    for k in range(f.w.d.digits - 1, f.first - 1, -1):
        a = f.w.d.axis[k]
        rows = rows * f.count[a] + f.at[a]
        weight[0] = 1 if a == axis else weight[0] * f.count[a]
    return rows


cdef int fill_tiled(const Work* w, const Device* v, const int32_t* tile_of_class, Columns* out, int inner,
                    int64_t unit) noexcept nogil:
    cdef const SideData* s = w.s
    cdef const SideData* d = w.d
    cdef Fill f
    cdef int64_t t, n, ordinal, class_, taker, size, group, part
    cdef int a, k, loop_axis, status = DONE
    cdef bint looped[MAX_RANK]
    cdef const Overlap* o
    f.w = w
    f.out = out
    f.inner = inner
    f.first = 1 if unit == 1 else 2
    f.tile_of_class = tile_of_class
    f.pieces = <Piece*> malloc((w.first[s.rank] + 1) * sizeof(Piece))
    if f.pieces == NULL:
        return NO_MEMORY
    if open_pattern(&f) != DONE:
        free(f.pieces)
        return NO_MEMORY
    loop_axis = s.axis[f.first] if f.pattern.memory != NULL else -1
    size = unit * s.itemsize
    for n in range(w.first[inner], w.first[inner + 1]):
        o = &w.overlaps[n]
        f.pieces[n] = Piece(o.x0 * size, (o.x1 - o.x0) * size, o.y0 * size, width(d, inner, o.destination) * size,
                            o.destination * w.class_stride[inner])
    for a in range(s.rank):
        looped[a] = False
    for k in range(f.first, s.digits):
        looped[s.axis[k]] = True
    looped[inner] = True
    for t in range(s.tiles):
        ordinal = t if v.order == NULL else v.order[t]
        class_ = s.class_of[ordinal]
        f.tile = <int32_t> tile_of(v.source, ordinal)
        size = s.itemsize
        for k in range(s.digits):
            f.stride[k] = size
            if s.count[k]:
                size *= s.count[k]
            elif s.divisor[k] == 1:
                size *= width(s, s.axis[k], s.partitions[class_ * s.rank + s.axis[k]])
            else:
                size *= width(s, s.axis[k], s.partitions[class_ * s.rank + s.axis[k]]) // s.divisor[k]
        group = 0
        for a in range(s.rank):
            part = s.partitions[class_ * s.rank + a]
            f.part[a] = part
            f.row[a] = w.first[a] + w.row[a][part]
            f.end[a] = w.first[a] + w.row[a][part + 1]
            if f.row[a] == f.end[a]:
                break
            if not looped[a]:
                # One element wide (or one block): settled from the start.
                o = &w.overlaps[f.row[a]]
                f.at[a] = o.y0 // (unit if a == s.axis[0] else 1)
                f.count[a] = width(d, a, o.destination) // (unit if a == s.axis[0] else 1)
                group += o.destination * w.class_stride[a]
        else:
            f.own = f.own_loop = -1
            taker = v.taker[f.tile] if f.tile < v.takers else -1
            if taker >= 0:
                part = d.partitions[taker * d.rank + inner]
                f.own = overlap_of(w, inner, s.partitions[class_ * s.rank + inner], part)
                f.own_group = taker - part * w.class_stride[inner]
                if loop_axis >= 0:
                    part = d.partitions[taker * d.rank + loop_axis]
                    f.own_loop = overlap_of(w, loop_axis, s.partitions[class_ * s.rank + loop_axis], part)
                    f.own_group -= part * w.class_stride[loop_axis]
            if f.own < 0:
                f.own_group = -1
            if not loop(&f, s.digits - 1, 0, group):
                status = NO_MEMORY
                break
    free(f.pieces)
    free(f.pattern.memory)
    return status


# --- one side linear -------------------------------------------------------------------------------------------------


# A piece of a linear destination's row, in bytes.
cdef struct Line:
    int64_t end             # from the row's column 0
    int64_t base            # the offset of the row's column 0, if it were there
    int32_t tile


cdef inline const Line* line_at(const Line* lines, const int64_t* first, int64_t low) noexcept nogil:
    """The piece of a row that byte `low` is in."""
    cdef int64_t i = first[0], high = first[1], middle
    while high - i > 8:
        middle = (i + high) >> 1
        if lines[middle].end > low:
            high = middle + 1
        else:
            i = middle + 1
    while lines[i].end <= low:
        i += 1
    return lines + i


cdef inline void put_whole_rows(Columns* c, int64_t rows, int64_t source, int64_t step, int64_t size,
                                int32_t own) noexcept nogil:
    """What is alike in rows that are one run each: all but their ends, which stand there already."""
    cdef int64_t k, n = c.transfers
    cdef int32_t* tile = c.source_tile + n
    cdef int64_t* column = c.source_offset + n
    for k in range(rows):
        tile[k] = own
    for k in range(rows):
        column[k] = source + k * step
    column = c.size + n
    for k in range(rows):
        column[k] = size
    column = c.start + n
    for k in range(rows):
        column[k] = n + k
    c.transfers = n + rows


cdef bint put_rows(Columns* c, const Line* lines, const int64_t* first, int64_t rows, int64_t low, int64_t high,
                   int64_t source, int64_t step, int32_t own) noexcept nogil:
    """Bytes [low, high) of consecutive rows, cut at the rows' pieces. False where the columns are too short.

    `source` is the offset of the first row's column 0 (if it were there), `step` from row to row.
    """
    cdef int64_t r = 0, whole, at, end, n
    cdef int32_t* tile
    cdef int64_t* offset
    cdef const Line* line = NULL
    while r < rows:
        # Rows that lie in one piece of another tile: most.
        tile = c.destination_tile + c.transfers
        offset = c.destination_offset + c.transfers
        whole = min(rows - r, c.capacity - c.transfers)
        n = 0
        while n < whole:
            line = line_at(lines, first + r + n, low)
            if line.end < high or line.tile == own:
                break
            tile[n] = line.tile
            offset[n] = line.base + low
            n += 1
        put_whole_rows(c, n, source + low + r * step, step, high - low, own)
        r += n
        if r == rows:
            break
        # A row that is cut, or stays here.
        line = line_at(lines, first + r, low)
        at = low
        while at < high:
            end = min(line.end, high)
            if line.tile != own:
                n = c.transfers
                if n == c.capacity:
                    return False
                c.source_tile[n] = own
                c.source_offset[n] = source + r * step + at
                c.size[n] = end - at
                c.start[n] = n
                c.destination_tile[n] = line.tile
                c.destination_offset[n] = line.base + at
                c.transfers = n + 1
            elif not put_local(c, own, source + r * step + at, end - at, line.base + at):
                return False
            at = end
            line += 1
        r += 1
    return True


cdef int fill_to_linear(const Work* w, const Device* v, const int64_t* shape, Columns* out) noexcept nogil:
    """Rows of an axis-tiled, row-major source, cut at the pieces of a linear destination."""
    cdef const SideData* s = w.s
    cdef const SideData* d = w.d
    cdef int last = s.rank - 1, a
    cdef int64_t columns = shape[last], rows, t, i, n, ordinal, class_, low, source, row, size, part, begin, step
    cdef int64_t pieces = d.piece_row[d.tiles]
    cdef int64_t row_of[MAX_RANK]       # overlaps of the axis
    cdef int64_t end_of[MAX_RANK]
    cdef int64_t over[MAX_RANK]         # the odometer over the outer axes: overlap, coordinate
    cdef int64_t at[MAX_RANK]
    cdef int64_t stride[MAX_RANK]       # the source's, and the destination's in rows
    cdef int64_t weight[MAX_RANK]
    cdef const Overlap* o
    cdef Line* lines
    cdef int64_t* first
    cdef int32_t tile
    cdef int status = DONE
    rows = 1
    for a in range(last - 1, -1, -1):
        weight[a] = rows
        rows *= shape[a]
    lines = <Line*> malloc(pieces * sizeof(Line) + (rows + 1) * sizeof(int64_t))
    if lines == NULL:
        return NO_MEMORY
    first = <int64_t*> (lines + pieces)
    row = -1
    for ordinal in range(d.tiles):
        tile = <int32_t> tile_of(v.destination, ordinal)
        begin = d.piece_begin[d.piece_row[ordinal]]
        for i in range(d.piece_row[ordinal], d.piece_row[ordinal + 1]):
            if d.piece_begin[i] // columns != row:
                row = d.piece_begin[i] // columns
                first[row] = i
            low = row * columns
            lines[i] = Line((d.piece_begin[i + 1] - low) * s.itemsize, (low - begin) * s.itemsize, tile)
    first[rows] = pieces
    for t in range(s.tiles):
        ordinal = t if v.order == NULL else v.order[t]
        class_ = s.class_of[ordinal]
        tile = <int32_t> tile_of(v.source, ordinal)
        size = s.itemsize
        for a in range(last, -1, -1):
            part = s.partitions[class_ * s.rank + a]
            row_of[a] = w.first[a] + w.row[a][part]
            end_of[a] = w.first[a] + w.row[a][part + 1]
            stride[a] = size
            size *= width(s, a, part)
        for a in range(s.rank):
            if row_of[a] == end_of[a]:
                break
            over[a] = row_of[a]
            at[a] = 0
        else:
            # One overlap of the last axis, as the destination has it whole; the second last axis is the inner loop.
            o = &w.overlaps[row_of[last]]
            while status == DONE:
                row = 0
                source = (o.x0 - o.y0) * s.itemsize
                for a in range(last):
                    row += (w.overlaps[over[a]].y0 + at[a]) * weight[a]
                    source += (w.overlaps[over[a]].x0 + at[a]) * stride[a]
                if last == 0:
                    n = 1
                    step = 0
                else:
                    n = w.overlaps[over[last - 1]].x1 - w.overlaps[over[last - 1]].x0
                    step = stride[last - 1]
                low = o.y0 * s.itemsize
                if not put_rows(out, lines, first + row, n, low, low + (o.x1 - o.x0) * s.itemsize, source,
                                step, tile):
                    status = NO_MEMORY
                # The next rows of the source.
                for a in range(last - 1, -1, -1):
                    at[a] += n if a == last - 1 else 1
                    if at[a] < w.overlaps[over[a]].x1 - w.overlaps[over[a]].x0:
                        break
                    at[a] = 0
                    over[a] += 1
                    if over[a] < end_of[a]:
                        break
                    over[a] = row_of[a]
                else:
                    break
        if status != DONE:
            break
    out.destinations = out.transfers
    free(lines)
    return status


cdef int fill_from_linear(const Work* w, const Device* v, const int64_t* shape, const int32_t* tile_of_class,
                          Columns* out) noexcept nogil:
    """Pieces of a linear source, cut at the partitions of an axis-tiled, row-major destination."""
    cdef const SideData* s = w.s
    cdef const SideData* d = w.d
    cdef int last = s.rank - 1, a
    cdef int64_t columns = shape[last], t, i, n, m, e, k, ordinal, row, rows, group, high, from_, to, begin, source
    cdef int64_t own, first, before = 0, destination, part
    cdef const Overlap* o
    cdef const Overlap* inner = w.overlaps + w.first[last]
    cdef int64_t count = w.first[last + 1] - w.first[last]
    cdef int32_t* table[MAX_RANK]       # outer axes: the overlap at each coordinate, -1 for none
    cdef int32_t* memory
    cdef int32_t tile
    cdef bint outside = False
    cdef int status = DONE
    memory = outer_overlaps(w, False, shape, table)
    if memory == NULL:
        return NO_MEMORY
    row = -1
    first = group = rows = 0
    for t in range(s.tiles):
        ordinal = t if v.order == NULL else v.order[t]
        tile = <int32_t> tile_of(v.source, ordinal)
        own = v.taker[tile] if tile < v.takers else -1
        source = 0
        for i in range(s.piece_row[ordinal], s.piece_row[ordinal + 1]):
            begin = s.piece_begin[i]
            if begin // columns != row:
                row = begin // columns
                first = group = rows = 0
                outside = False
                m = row
                part = 1        # rows of the destination's shard so far
                for a in range(last - 1, -1, -1):
                    n = table[a][m % shape[a]]
                    if n < 0:
                        outside = True
                        break
                    o = &w.overlaps[n]
                    rows += (o.y0 + m % shape[a] - o.x0) * part
                    part *= width(d, a, o.destination)
                    group += o.destination * w.class_stride[a]
                    m = m // shape[a]
            from_ = begin - row * columns
            to = from_ + s.piece_begin[i + 1] - begin
            source -= from_         # the offset of the row's column 0, if it were there
            if not outside and count:
                if from_ < before:      # tiles in another order than their pieces
                    first = 0
                before = from_
                while first < count and inner[first].x1 <= from_:
                    first += 1
                for k in range(first, count):
                    o = &inner[k]
                    if o.x0 >= to:
                        break
                    begin = max(from_, o.x0)
                    high = min(to, o.x1)
                    destination = (o.y0 + begin - o.x0 + width(d, last, o.destination) * rows) * s.itemsize
                    e = group + o.destination * w.class_stride[last]
                    if e == own:
                        if not put_local(out, tile, (source + begin) * s.itemsize, (high - begin) * s.itemsize,
                                         destination):
                            status = NO_MEMORY
                            break
                        if d.replicas == 1:
                            continue
                    n = out.transfers
                    if n == out.capacity or out.destinations + d.replicas > out.ends + (e == own):
                        status = NO_MEMORY
                        break
                    out.source_tile[n] = tile
                    out.source_offset[n] = (source + begin) * s.itemsize
                    out.size[n] = (high - begin) * s.itemsize
                    out.start[n] = out.destinations
                    out.transfers = n + 1
                    out.destinations = put_ends(out, out.destinations, tile_of_class + e * d.replicas, d.replicas, tile,
                                                e == own, destination)
            if status != DONE:
                break
            source += to
        if status != DONE:
            break
    free(memory)
    return status


# --- the face --------------------------------------------------------------------------------------------------------


def is_filled(Analysis analysis not None):
    """Whether `fill` fills this copy's columns; others are walked."""
    cdef int inner = 0
    cdef int64_t unit = 0
    cdef const Work* w = &analysis.work
    if not analysis.decided or w.s.linear and w.d.linear:
        return False
    if w.s.linear or w.d.linear:
        return (w.longest * w.s.itemsize <= CUT and w.s.replicas == 1
                and is_row_major(w.s if w.d.linear else w.d))
    return is_regular(w, &inner, &unit)


def fill(Analysis analysis not None, const int32_t[::1] tile_of_class not None, int32_t[::1] source_tile not None,
         int64_t[::1] source_offset not None, int64_t[::1] size not None, int64_t[::1] start not None,
         int32_t[::1] destination_tile not None, int64_t[::1] destination_offset not None,
         int32_t[::1] local_tile not None, int64_t[::1] local_source not None, int64_t[::1] local_size not None,
         int64_t[::1] local_destination not None):
    """Fill columns of exactly the counted lengths (`start` is one longer), of a copy that `is_filled`.

    `tile_of_class` lists the device tiles of each destination class, ascending. Returns how many rows, destinations and
    local runs were filled; never more than there is room for.
    """
    cdef Columns c
    cdef int inner = 0, status
    cdef int64_t unit = 0
    cdef const Work* w = &analysis.work
    c = open_columns(source_tile, source_offset, size, start, destination_tile, destination_offset, local_tile,
                     local_source, local_size, local_destination)
    with nogil:
        if w.d.linear:
            status = fill_to_linear(w, &analysis.device, analysis.shape, &c)
        elif w.s.linear:
            status = fill_from_linear(w, &analysis.device, analysis.shape, &tile_of_class[0], &c)
        else:
            is_regular(w, &inner, &unit)
            status = fill_tiled(w, &analysis.device, &tile_of_class[0], &c, inner, unit)
        start[c.transfers] = c.destinations
    if status == NO_MEMORY:
        raise MemoryError
    return c.transfers, c.destinations, c.locals_
