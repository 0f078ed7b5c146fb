"""Regions to runs: walk every source shard in storage order, and find where each element goes.

Walking the source in the order of its storage gives the canonical listing without a sort: a run grows while the next
element is next on both sides, and goes out when it is not. The two fastest digits are taken together where both sides
agree on them; the others are loops.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from ._columns cimport CUT, open_columns, put_local
from ._storage cimport load_digits


# What no count walks: about a minute. There is no list that long.
cdef int64_t MOST_STEPS = <int64_t> 1 << 31


# --- out: runs to rows -----------------------------------------------------------------------------------------------


cdef void write_transfers(Walk* w, int64_t remote, int64_t first, int64_t last) noexcept nogil:
    """One run to the tiles first..last of the groups that don't hold the source, cut at the longest message."""
    cdef Sink* s = w.sink
    cdef Columns* c = &s.c
    cdef const Problem* p = w.p
    cdef int64_t left = w.run_length * p.itemsize, source = w.run_source * p.itemsize
    cdef int64_t destination = w.run_destination * p.itemsize, size, e, n, words
    cdef int32_t tile
    if not s.filling:
        # Full messages are alike, and the last one is what is left.
        n = (left - 1) // CUT
        size = left - n * CUT
        c.transfers += n + 1
        c.destinations += (n + 1) * remote
        s.bytes += left
        if (source | destination) & 3:
            s.misaligned += n + 1
        elif size & 3:
            s.misaligned += 1
        if s.sent != NULL:
            words = n * (CUT // 4) + (size + 3) // 4
            s.sent[w.tile] += words
            for e in range(first, last):
                tile = p.group_tile[e]
                if p.holder[tile] != w.class_:
                    s.received[tile] += words
        return
    while left > 0:
        size = min(left, <int64_t> CUT)
        if c.transfers == c.capacity or c.destinations + remote > c.ends:
            return      # the list comes out short, which its maker sees
        n = c.transfers
        c.source_tile[n] = w.tile
        c.source_offset[n] = source
        c.size[n] = size
        c.start[n] = c.destinations
        n = c.destinations
        for e in range(first, last):
            tile = p.group_tile[e]
            if p.holder[tile] != w.class_:
                c.destination_tile[n] = tile
                c.destination_offset[n] = destination
                n += 1
        c.transfers += 1
        c.destinations = n
        left -= size
        source += size
        destination += size


cdef void flush(Walk* w) noexcept nogil:
    """The pending run goes out: to this tile itself, and to the others that take it."""
    cdef const Problem* p = w.p
    cdef Sink* s = w.sink
    cdef int64_t first, last, e, remote = 0
    cdef int32_t tile
    if w.run_length == 0:
        return
    first = p.group_row[w.run_group]
    last = p.group_row[w.run_group + 1]
    for e in range(first, last):
        tile = p.group_tile[e]
        if tile == w.tile:
            if s.filling:
                put_local(&s.c, tile, w.run_source * p.itemsize, w.run_length * p.itemsize,
                          w.run_destination * p.itemsize)
            else:
                s.c.locals_ += 1
        elif p.holder[tile] != w.class_:
            remote += 1
    if remote and w.sends:
        write_transfers(w, remote, first, last)
    w.run_length = 0


cdef inline void push(Walk* w, int64_t source, int64_t destination, int64_t length, int64_t group) noexcept nogil:
    if (source == w.run_source + w.run_length and destination == w.run_destination + w.run_length
            and group == w.run_group and w.run_length):
        w.run_length += length
        return
    flush(w)
    w.run_source = source
    w.run_destination = destination
    w.run_length = length
    w.run_group = group


cdef void push_linear(Walk* w, int64_t source, int64_t position, int64_t length) noexcept nogil:
    """A stretch of a linear destination's elements, cut at its pieces (and at the pairs of Output)."""
    cdef const Problem* p = w.p
    cdef int64_t i = w.piece, low, high, size, x
    if not (p.to_begin[i] <= position < p.to_begin[i + 1]):
        low = 0
        high = p.to_pieces
        while high - low > 1:
            i = (low + high) >> 1
            if p.to_begin[i] <= position:
                low = i
            else:
                high = i
        i = low
    while length > 0 and w.sink.steps <= MOST_STEPS:
        w.sink.steps += 1
        while position >= p.to_begin[i + 1]:
            i += 1
        size = min(length, p.to_begin[i + 1] - position)
        x = position - p.to_begin[i]
        if p.pairs:
            size = min(size, 2 - x % 2)
            x = x // 16 * 16 + x // 2 % 4 * 4 + x // 8 % 2 * 2 + x % 2
        push(w, source, p.to_offset[i] + x, size, i)
        source += size
        position += size
        length -= size
    w.piece = i


cdef inline void emit(Walk* w, int64_t source, int64_t destination, int64_t length, int64_t group) noexcept nogil:
    w.sink.steps += 1
    if w.p.to_linear:
        push_linear(w, source, destination, length)
    else:
        push(w, source, destination, length, group)


# --- coordinates to destination offsets ------------------------------------------------------------------------------


cdef inline int64_t low_offset(const Problem* p, int axis, int64_t y) noexcept nogil:
    """The offset that the low digits of one axis add, for y below the axis' divisor."""
    cdef int k
    cdef int64_t total = 0
    if p.lows[axis] == 1:
        return y * p.low[axis][0].stride
    for k in range(p.lows[axis]):
        total += y // p.low[axis][k].divisor % p.low[axis][k].count * p.low[axis][k].stride
    return total


cdef inline int64_t settled_offset(const Walk* w, const int64_t* strides, int axis, int other) noexcept nogil:
    """What the settled axes add, but for two that are still moving."""
    cdef int k
    cdef int64_t total = w.base
    for k in range(w.p.rank):
        if k != axis and k != other:
            total += w.top[k] * strides[k]
    return total


cdef inline int64_t find(const Segment* segments, int64_t low, int64_t high, int64_t x) noexcept nogil:
    """The first segment that ends after x."""
    cdef int64_t middle
    while high - low > 8:
        middle = (low + high) >> 1
        if segments[middle].x1 > x:
            high = middle + 1
        else:
            low = middle + 1
    while low < high and segments[low].x1 <= x:
        low += 1
    return low


cdef void stretch(Walk* w, int axis, int64_t source, int64_t base, const int64_t* strides, int64_t y, int64_t length,
                  int64_t group) noexcept nogil:
    """Consecutive coordinates of one axis, from y of the destination on: runs as far as its fastest digit reaches."""
    cdef const Problem* p = w.p
    cdef int64_t divisor = p.divisor[axis], top = y // divisor, low = y - top * divisor, size, reach
    reach = 1 if axis != p.fast_axis else p.fast_count
    if reach == 0:
        emit(w, source, base + y * strides[axis], length, group)
        return
    while length > 0 and w.sink.steps <= MOST_STEPS:
        size = min(length, reach - low % reach)
        emit(w, source, base + low_offset(p, axis, low) + top * strides[axis], size, group)
        source += size
        length -= size
        low += size
        if low == divisor:
            low = 0
            top += 1


cdef bint settle_joint(Walk* w, int64_t z) noexcept nogil:
    """Settle the joint axis at coordinate z; False where the destination has nothing there."""
    cdef const Problem* p = w.p
    cdef const Segment* s
    cdef int64_t k = find(p.joints, 0, p.joint_count, z), y
    if k == p.joint_count or p.joints[k].x0 > z:
        return False
    s = &p.joints[k]
    y = s.y0 + z - s.x0
    w.top[p.joint] = y // p.divisor[p.joint]
    w.base += low_offset(p, p.joint, y % p.divisor[p.joint])
    w.group += s.group
    w.kind += s.kind
    return True


cdef void line_of_joint(Walk* w, const Segment* s, int64_t low, int64_t high, int64_t source) noexcept nogil:
    """A line along the axis that the joint coordinate ascends with."""
    cdef const Problem* p = w.p
    cdef const Segment* j
    cdef const int64_t* strides
    cdef int64_t z, k, size
    while low < high and w.sink.steps <= MOST_STEPS:
        w.sink.steps += 1
        z = w.joint + s.z0 + (low - s.x0) * s.zstep
        k = find(p.joints, 0, p.joint_count, z)
        if k == p.joint_count:
            return
        j = &p.joints[k]
        size = 1
        if j.x0 > z:
            if s.zstep == 1:
                size = j.x0 - z
        else:
            if s.zstep == 1:
                size = min(high - low, j.x1 - z)
            strides = p.strides + (w.kind + j.kind) * p.rank
            stretch(w, p.joint, source, settled_offset(w, strides, p.joint, p.joint), strides, j.y0 + z - j.x0, size,
                    w.group + j.group)
        low += size
        source += size


# --- the walk --------------------------------------------------------------------------------------------------------


cdef void line(Walk* w, int64_t source) noexcept nogil:
    """The fastest digit: consecutive coordinates of one axis."""
    cdef const Problem* p = w.p
    cdef int axis = w.digit[w.digits - 1].axis
    cdef int64_t begin = w.at[axis], end = begin + w.digit[w.digits - 1].count, k, low, high
    cdef int64_t group = w.group, kind = w.kind, base = w.base
    cdef const Segment* s
    cdef const int64_t* strides
    for k in range(find(p.segments, w.low[axis], w.high[axis], begin), w.high[axis]):
        s = &p.segments[k]
        if s.x0 >= end:
            break
        low = max(s.x0, begin)
        high = min(s.x1, end)
        if axis == p.joint:
            line_of_joint(w, s, low, high, source + low - begin)
            continue
        if p.joint >= 0 and not settle_joint(w, w.joint + s.z0):
            w.sink.steps += 1
            if w.sink.steps > MOST_STEPS:
                break
            continue
        strides = p.strides + (w.kind + s.kind) * p.rank
        stretch(w, axis, source + low - begin, settled_offset(w, strides, axis, axis), strides, s.y0 + low - s.x0,
                high - low, w.group + s.group)
        w.group = group
        w.kind = kind
        w.base = base


cdef void settle(Walk* w, int axis, const Segment* s, int64_t x) noexcept nogil:
    """Settle an axis at coordinate x of a segment."""
    cdef const Problem* p = w.p
    cdef int64_t y
    w.joint += s.z0 + (x - s.x0) * s.zstep
    if axis != p.joint:
        y = s.y0 + x - s.x0
        w.top[axis] = y // p.divisor[axis]
        w.base += low_offset(p, axis, y - w.top[axis] * p.divisor[axis])
        w.group += s.group
        w.kind += s.kind


cdef bint plane(Walk* w, int64_t source) noexcept nogil:
    """The two fastest digits at once, where the fastest is whole on both sides: runs of whole lines.

    False where it isn't, and nothing was done.
    """
    cdef const Problem* p = w.p
    cdef Digit* fast = &w.digit[w.digits - 1]
    cdef Digit* second = &w.digit[w.digits - 2]
    cdef int64_t begin = w.at[fast.axis], n = fast.count
    cdef int64_t k = find(p.segments, w.low[fast.axis], w.high[fast.axis], begin)
    cdef const Segment* f = &p.segments[k]
    cdef const Segment* s
    cdef const int64_t* strides
    cdef int64_t y, top, low, high, x, base, size, step, v
    if k == w.high[fast.axis] or f.x0 > begin or f.x1 < begin + n:
        return False
    y = f.y0 + begin - f.x0
    if p.fast_count and (p.fast_count != n or y % n):
        return False
    top = y // p.divisor[fast.axis]
    base = low_offset(p, fast.axis, y - top * p.divisor[fast.axis])
    begin = w.at[second.axis]
    for k in range(find(p.segments, w.low[second.axis], w.high[second.axis], begin), w.high[second.axis]):
        s = &p.segments[k]
        if s.x0 >= begin + second.count:
            break
        low = max(s.x0, begin)
        high = min(s.x1, begin + second.count)
        strides = p.strides + (w.kind + f.kind + s.kind) * p.rank
        step = p.second_stride if p.second_stride else strides[second.axis]
        v = settled_offset(w, strides, fast.axis, second.axis) + base + top * strides[fast.axis]
        y = s.y0 + low - s.x0
        while low < high and w.sink.steps <= MOST_STEPS:
            x = y // p.divisor[second.axis]
            if step != n:           # the lines are apart in the destination
                size = 1
            elif p.second_count:
                size = min(high - low, p.second_count - y % p.second_count)
            else:
                size = high - low
            emit(w, source + (low - begin) * n,
                 v + low_offset(p, second.axis, y - x * p.divisor[second.axis]) + x * strides[second.axis],
                 size * n, w.group + f.group + s.group)
            low += size
            y += size
    return True


cdef void descend(Walk* w, int level, int64_t source) noexcept nogil:
    """Loop over the digits from `level` on; `source` is the offset that the slower ones add up to."""
    cdef const Problem* p = w.p
    cdef Digit* d = &w.digit[level]
    cdef int axis = d.axis
    cdef int64_t at, group, kind, base, joint, k, x, v
    cdef const Segment* s
    w.sink.steps += 1
    if w.sink.steps > MOST_STEPS:       # given up
        return
    if level == w.digits - 1:
        line(w, source)
        return
    if level == w.digits - 2 and w.fusable and plane(w, source):
        return
    at = w.at[axis]
    if not w.last[level]:
        for v in range(d.count):
            if w.sink.steps > MOST_STEPS:
                break
            w.at[axis] = at + v * d.divisor
            descend(w, level + 1, source + v * d.stride)
        w.at[axis] = at
        return
    group = w.group
    kind = w.kind
    base = w.base
    joint = w.joint
    for k in range(find(p.segments, w.low[axis], w.high[axis], at), w.high[axis]):
        s = &p.segments[k]
        if s.x0 >= at + d.count:
            break
        for x in range(max(s.x0, at), min(s.x1, at + d.count)):
            if w.sink.steps > MOST_STEPS:
                return
            settle(w, axis, s, x)
            descend(w, level + 1, source + (x - at) * d.stride)
            w.group = group
            w.kind = kind
            w.base = base
            w.joint = joint


cdef void walk_shard(Walk* w, const int64_t* widths, const int64_t* origin, int64_t source) noexcept nogil:
    """All the runs of one source shard, whose first element is `source` in its tile's buffer."""
    cdef const Problem* p = w.p
    cdef bint moving[MAX_RANK]
    cdef int k, axis
    cdef int64_t i
    w.digits = load_digits(p.table, p.digits, widths, w.digit)
    w.group = w.kind = w.base = w.joint = 0
    w.run_length = 0
    for k in range(p.rank):
        w.at[k] = origin[k]
        w.top[k] = 0
        moving[k] = False
    for k in range(w.digits - 1, -1, -1):
        w.last[k] = not moving[w.digit[k].axis]
        moving[w.digit[k].axis] = True
    # Axes of width one are settled from the start, but for the one that makes a line of a single element.
    for k in range(p.rank):
        if not moving[k] and (w.digits or k != p.rank - 1):
            i = find(p.segments, w.low[k], w.high[k], origin[k])
            if i == w.high[k] or p.segments[i].x0 > origin[k]:
                return
            settle(w, k, &p.segments[i], origin[k])
    if w.digits == 0:
        if p.rank == 0:
            emit(w, source, 0, 1, 0)
            flush(w)
            return
        w.digit[0] = Digit(p.rank - 1, 1, 1, 1)
        w.last[0] = True
        w.digits = 1
    w.fusable = False
    if w.digits >= 2 and p.joint < 0:
        axis = w.digit[w.digits - 2].axis
        w.fusable = (w.digit[w.digits - 1].axis == p.fast_axis and axis == p.second_axis and axis != p.fast_axis
                     and w.digit[w.digits - 2].divisor == 1)
    descend(w, 0, source)
    flush(w)


cdef void walk_partitions(Walk* w, int64_t own) noexcept nogil:
    """The one shard of a tile of an axis-tiled source. A replica that doesn't send walks its own part only."""
    cdef const Problem* p = w.p
    cdef int64_t widths[MAX_RANK]
    cdef int64_t origin[MAX_RANK]
    cdef int64_t part, row, k, mine
    cdef int axis
    for axis in range(p.rank):
        part = w.class_ // p.class_strides[axis] % (p.first[axis + 1] - p.first[axis])
        row = p.first[axis] + axis + part
        widths[axis] = p.widths[p.first[axis] + part]
        origin[axis] = 0
        w.low[axis] = p.rows[row]
        w.high[axis] = p.rows[row + 1]
        if not w.sends and p.joint < 0 and not p.to_linear:
            mine = own // p.taker_strides[axis] % p.taker_parts[axis]
            for k in range(w.low[axis], w.high[axis]):
                if p.segments[k].part == mine:
                    w.low[axis] = k
                    w.high[axis] = k + 1
                    break
            else:
                return
        if w.low[axis] == w.high[axis] or widths[axis] == 0:
            return
    walk_shard(w, widths, origin, 0)


cdef void walk_pieces(Walk* w) noexcept nogil:
    """The row pieces of a tile of a linear source."""
    cdef const Problem* p = w.p
    cdef int64_t widths[MAX_RANK]
    cdef int64_t origin[MAX_RANK]
    cdef int64_t i, row, columns = p.shape[p.rank - 1], first = p.piece_row[w.class_]
    cdef int axis
    for axis in range(p.rank):
        widths[axis] = 1
        w.low[axis] = p.rows[p.first[axis] + axis]
        w.high[axis] = p.rows[p.first[axis] + axis + 1]
    for i in range(first, p.piece_row[w.class_ + 1]):
        row = p.piece_begin[i] // columns
        for axis in range(p.rank - 2, -1, -1):
            origin[axis] = row % p.shape[axis]
            row = row // p.shape[axis]
        origin[p.rank - 1] = p.piece_begin[i] % columns
        widths[p.rank - 1] = p.piece_begin[i + 1] - p.piece_begin[i]
        walk_shard(w, widths, origin, p.piece_begin[i] - p.piece_begin[first])


cdef void walk(const Problem* p, Sink* sink) noexcept nogil:
    """All the runs of a copy, in canonical order."""
    cdef Walk w
    cdef int64_t n, own
    w.p = p
    w.sink = sink
    w.piece = 0
    for n in range(p.tiles):
        if sink.steps > MOST_STEPS:
            break
        w.tile = p.tile[n]
        w.class_ = p.class_[n]
        w.sends = p.sends[n]
        own = p.taker[w.tile]
        if not w.sends and own < 0:
            continue
        if p.linear:
            walk_pieces(&w)
        else:
            walk_partitions(&w, own)
    if sink.filling:
        sink.c.start[sink.c.transfers] = sink.c.destinations


cdef const int64_t* start64(const int64_t[::1] a) noexcept:
    return &a[0] if a.shape[0] else NULL


cdef const int32_t* start32(const int32_t[::1] a) noexcept:
    return &a[0] if a.shape[0] else NULL


cdef class Runs:
    """The runs of one copy: `count` them, then `fill` columns with them. Both may run on many threads at once."""

    cdef Problem p
    cdef object kept    # the arrays that the problem points into

    def __init__(self, int64_t itemsize, source not None, tiles not None, linear, destination not None, groups not None,
                 joint not None, to_linear):
        """Point into prepared columns, which are not checked again; see `tiling.regions` for what they hold."""
        cdef Problem* p = &self.p
        cdef const int64_t[:, ::1] table
        cdef const int64_t[:, ::1] segments
        cdef const int64_t[:, ::1] lows
        cdef const int64_t[:, ::1] strides
        cdef const int64_t[::1] divisors
        cdef const int64_t[:, ::1] joints
        cdef const uint8_t[::1] sends
        cdef int k, axis
        self.kept = (source, tiles, linear, destination, groups, joint, to_linear)
        p.itemsize = itemsize
        table, first, widths, class_strides, rows, segments = source
        p.digits = <int> table.shape[0]
        p.table = &table[0, 0] if table.shape[0] else NULL
        p.rank = <int> first.shape[0] - 1
        p.first = start64(first)
        p.widths = start64(widths)
        p.class_strides = start64(class_strides)
        p.rows = start64(rows)
        p.segments = <const Segment*> &segments[0, 0] if segments.shape[0] else NULL
        tile, class_, sends, holder = tiles
        p.tiles = tile.shape[0]
        p.tile = start32(tile)
        p.class_ = start32(class_)
        p.sends = &sends[0] if sends.shape[0] else NULL
        p.holder = start32(holder)
        p.linear = linear is not None
        if p.linear:
            piece_row, piece_begin, shape = linear
            p.piece_row = start64(piece_row)
            p.piece_begin = start64(piece_begin)
            p.shape = start64(shape)
        lows, divisors, strides, fast = destination
        for k in range(p.rank):
            p.lows[k] = 0
            p.divisor[k] = divisors[k]
        for k in range(lows.shape[0]):
            axis = <int> lows[k, 0]
            p.low[axis][p.lows[axis]] = Digit(axis, lows[k, 1], lows[k, 2], lows[k, 3])
            p.lows[axis] += 1
        p.strides = &strides[0, 0] if strides.shape[1] else NULL
        p.fast_axis, p.fast_count, p.second_axis, p.second_count, p.second_stride = fast
        group_row, group_tile, taker, taker_strides, taker_parts = groups
        p.group_row = start64(group_row)
        p.group_tile = start32(group_tile)
        p.taker = start32(taker)
        p.taker_strides = start64(taker_strides)
        p.taker_parts = start64(taker_parts)
        p.joint, joints = joint
        p.joint_count = joints.shape[0]
        p.joints = <const Segment*> &joints[0, 0] if joints.shape[0] else NULL
        p.to_linear = to_linear is not None
        if p.to_linear:
            to_begin, to_offset, p.pairs = to_linear
            p.to_begin = start64(to_begin)
            p.to_offset = start64(to_offset)
            p.to_pieces = to_offset.shape[0]

    def count(self, int64_t[::1] sent=None, int64_t[::1] received=None):
        """Transfers, destinations, local runs, bytes, misaligned; adds each tile's words to `sent`, `received`.

        None if the walk was given up.
        """
        cdef Sink s
        memset(&s, 0, sizeof(Sink))
        if sent is not None:
            s.sent = &sent[0]
            s.received = &received[0]
        with nogil:
            walk(&self.p, &s)
        if s.steps > MOST_STEPS:
            return None
        return s.c.transfers, s.c.destinations, s.c.locals_, s.bytes, s.misaligned

    def fill(self, int32_t[::1] source_tile not None, int64_t[::1] source_offset not None, int64_t[::1] size not None,
             int64_t[::1] start not None, int32_t[::1] destination_tile not None,
             int64_t[::1] destination_offset not None, int32_t[::1] local_tile not None,
             int64_t[::1] local_source not None, int64_t[::1] local_size not None,
             int64_t[::1] local_destination not None):
        """Fill columns of exactly the counted lengths (`start` is one longer)."""
        cdef Sink s
        memset(&s, 0, sizeof(Sink))
        s.filling = True
        s.c = open_columns(source_tile, source_offset, size, start, destination_tile, destination_offset, local_tile,
                           local_source, local_size, local_destination)
        with nogil:
            walk(&self.p, &s)
        return s.c.transfers, s.c.destinations, s.c.locals_
