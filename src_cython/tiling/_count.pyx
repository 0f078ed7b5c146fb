"""Totals of a copy without its runs.

A run starts at every element that no *link* enters. A link is a step to the next element on both sides at once, so it
is a step that carries through j digits of the source's order and k digits of the destination's, with the same movement.
Whether an element takes such a step is a condition on each of its coordinates apart. Hence, summed over all regions of
two axis-tiled tensors,

    runs = product over axes of (elements along the axis)
         - sum over (j, k) of product over axes of (links along the axis)

where both factors are sums over the axis' overlaps. The same products over one region's overlaps give its runs, which
is how the regions that stay on a tile are taken out; the products over one partition's overlaps give a tile's words.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from ._columns cimport CUT
from ._sides cimport SideData, SideTable
from ._storage cimport MAX_DIGITS, MAX_RANK

# --- overlaps --------------------------------------------------------------------------------------------------------


cdef int64_t overlay(const SideData* s, const SideData* d, int a, int64_t offset, bint share, int64_t* row,
                     Overlap* out) noexcept nogil:
    """The overlaps of one axis by source partition; `row` (source partitions + 1) says where each one's begin."""
    cdef int64_t i, j = 0, n = 0, low, high, ends
    for i in range(s.parts[a]):
        row[i] = n
        # Nonempty partitions ascend and are disjoint on both sides; empty ones may start anywhere.
        while s.start[a][i] < s.logical[a][i] and j < d.parts[a]:
            if d.start[a][j] == d.logical[a][j]:
                j += 1
                continue
            ends = d.logical[a][j] + offset
            low = max(s.start[a][i], d.start[a][j] + offset)
            high = min(s.logical[a][i], ends)
            if low < high:
                if share and s.logical[a][i] == ends:
                    high += min(s.physical[a][i] - s.logical[a][i], d.physical[a][j] - d.logical[a][j])
                out[n] = Overlap(low - s.start[a][i], high - s.start[a][i], low - offset - d.start[a][j], i, j)
                n += 1
            if ends > s.logical[a][i]:
                break
            j += 1
    row[s.parts[a]] = n
    return n


# --- links along one axis --------------------------------------------------------------------------------------------

# Which coordinates of one axis take a step of a side's order: x in [low, high) with x = -1 (mod period), and, where
# `not_period` is set, not x = -1 (mod not_period). Other shapes of digits are `odd`: tested one coordinate at a time.
cdef struct Condition:
    bint possible, odd
    int64_t move                # how the coordinate moves
    int64_t low, high
    int64_t period, not_period


cdef Condition condition(const SideData* s, int a, int step, int64_t wide) noexcept nogil:
    """The condition that a step which carries through digits 0..step-1 puts on axis a of a shard of this width."""
    cdef Condition c = Condition(True, False, 0, 0, wide, 1, 0)
    cdef int k
    cdef int64_t count, next_divisor = 1
    cdef bint passed = False    # a digit that may take any value
    # Digits of one axis stand in any order; go through them by ascending divisor.
    while True:
        for k in range(s.digits):
            if s.axis[k] == a and s.divisor[k] == next_divisor:
                break
        else:
            return c
        count = s.count[k] if s.count[k] else wide // s.divisor[k]
        if k == step:
            c.move += s.divisor[k]
            if count == 1:
                c.possible = False
            if s.count[k] == 0:
                c.high = (count - 1) * s.divisor[k]
            elif passed:
                c.odd = True
            else:
                c.not_period = s.divisor[k] * count
            passed = True
        elif k < step:
            c.move -= (count - 1) * s.divisor[k]
            if s.count[k] == 0:
                c.low = (count - 1) * s.divisor[k]
            elif passed:
                c.odd = True
            else:
                c.period *= count
        else:
            passed = True
        if s.count[k] == 0:
            return c
        next_divisor = s.divisor[k] * count


cdef int64_t block_of(const SideData* s, int a) noexcept nogil:
    """What the constant digits of an axis come to."""
    cdef int k
    cdef int64_t block = 1
    for k in range(s.digits):
        if s.axis[k] == a and s.count[k]:
            block *= s.count[k]
    return block


cdef bint takes(const SideData* s, int a, int step, int64_t x) noexcept nogil:
    """Whether coordinate x takes the step as far as the axis' constant digits go."""
    cdef int k
    cdef int64_t value
    for k in range(min(step + 1, s.digits)):
        if s.axis[k] == a and s.count[k]:
            value = x // s.divisor[k] % s.count[k]
            if (value == s.count[k] - 1) != (k < step):
                return False
    return True


cdef inline int64_t last_of(int64_t x, int64_t period) noexcept nogil:
    """How many y <= x are -1 (mod period), from a fixed origin; x >= -1."""
    return (x + 1) // period


cdef int64_t common_divisor(int64_t a, int64_t b) noexcept nogil:
    cdef int64_t rest
    while b:
        rest = a % b
        a = b
        b = rest
    return a


cdef int64_t inverse(int64_t a, int64_t n) noexcept nogil:
    """The x in [0, n) with a * x = 1 (mod n), for a and n without a common divisor."""
    cdef int64_t r = n, s = a, x = 0, y = 1, q, next_
    while s:
        q = r // s
        next_ = r - q * s
        r = s
        s = next_
        next_ = x - q * y
        x = y
        y = next_
    return x + n if x < 0 else x % n


cdef int64_t product_modulo(int64_t a, int64_t b, int64_t n) noexcept nogil:
    """a * b (mod n) for a and b in [0, n), whatever the product is."""
    cdef uint64_t x = <uint64_t> a, m = <uint64_t> n, total = 0
    while b:
        if b & 1:
            total += x
            if total >= m:
                total -= m
        x += x
        if x >= m:
            x -= m
        b >>= 1
    return <int64_t> total


cdef int64_t both(int64_t low, int64_t high, int64_t m, int64_t n, int64_t shift) noexcept nogil:
    """How many x in [low, high) are -1 (mod m) and have x + shift = -1 (mod n); low >= 0 and low + shift >= 0."""
    cdef int64_t x, step, divisor
    if high <= low:
        return 0
    if m == 1:
        return last_of(high - 1 + shift, n) - last_of(low - 1 + shift, n)
    if n == 1:
        return last_of(high - 1, m) - last_of(low - 1, m)
    if m % n == 0:
        return last_of(high - 1, m) - last_of(low - 1, m) if shift % n == 0 else 0
    if n % m == 0:
        return last_of(high - 1 + shift, n) - last_of(low - 1 + shift, n) if shift % m == 0 else 0
    # Neither divides the other: the first common one, if there is one, and from there by their common multiple. With
    # the first x = -1 (mod m), x + 1 + shift + m * t = 0 (mod n) has to be solved for t.
    divisor = common_divisor(m, n)
    x = (low + m) // m * m - 1
    if x >= high or (x + 1 + shift) % divisor:
        return 0
    n = n // divisor
    step = n - (x + 1 + shift) // divisor % n       # x + 1 + shift is not negative
    step = product_modulo(step % n, inverse(m // divisor % n, n), n)
    if step > (high - 1 - x) // m:
        return 0
    x += step * m
    return 1 if n > (high - 1 - x) // m else (high - 1 - x) // (m * n) + 1


cdef int64_t odd_links(const SideData* s, const SideData* d, int a, int j, int k, const Condition* c,
                       const Condition* e, int64_t low, int64_t high, int64_t shift) noexcept nogil:
    """`links_along` where a side's condition has another shape: it goes by the coordinate modulo all of the side's
    constant digits, so residues are tested one by one.
    """
    cdef int64_t n = 0, r, first
    cdef int64_t m = block_of(s, a) if c.odd else block_of(d, a)
    for r in range(m):
        # Coordinates x = first (mod m) from 0 on; both sides' if both are odd, as both are Output then.
        first = r if c.odd else (r - shift % m + m) % m
        if c.odd and not takes(s, a, j, first) or e.odd and not takes(d, a, k, first + (shift % m + m) % m):
            continue
        if c.odd and e.odd:
            n += both(low + m - 1 - first, high + m - 1 - first, m, 1, 0)
        elif c.odd:
            n += both(low + m - 1 - first, high + m - 1 - first, m, e.period, shift + first + 1 - m)
            if e.not_period:
                n -= both(low + m - 1 - first, high + m - 1 - first, m, e.not_period, shift + first + 1 - m)
        else:
            n += both(low, high, c.period, m, m - 1 - first)
            if c.not_period:
                n -= both(low, high, c.not_period, m, m - 1 - first)
    return n


cdef int64_t links_along(const SideData* s, const SideData* d, int a, int j, int k, const Condition* c,
                         const Condition* e, const Overlap* o) noexcept nogil:
    """How many coordinates of one overlap take step j of the source and step k of the destination, and stay in it."""
    cdef int64_t shift = o.y0 - o.x0, low, high, n = 0
    low = max(max(o.x0 - min(c.move, <int64_t> 0), c.low), e.low - shift)
    high = min(min(o.x1 - max(c.move, <int64_t> 0), c.high), e.high - shift)
    if high <= low:
        return 0
    if c.odd or e.odd:
        return odd_links(s, d, a, j, k, c, e, low, high, shift)
    if c.period == e.period == 1 and not c.not_period and not e.not_period:
        return high - low
    n = both(low, high, c.period, e.period, shift)
    if c.not_period:
        n -= both(low, high, c.not_period, e.period, shift)
    if e.not_period:
        n -= both(low, high, c.period, e.not_period, shift)
    if c.not_period and e.not_period:
        n += both(low, high, c.not_period, e.not_period, shift)
    return n


# --- one copy --------------------------------------------------------------------------------------------------------

cdef int find_links(Work* w) noexcept nogil:
    """The pairs of steps that link anything, and their links along every axis."""
    cdef const SideData* s = w.s
    cdef const SideData* d = w.d
    cdef int i, j, k, a
    cdef int64_t n, total, wide, wider
    cdef Condition c = Condition(False, False, 0, 0, 0, 1, 0), e = c
    cdef Overlap* o
    cdef int64_t* along
    for j in range(s.digits):
        for k in range(d.digits):
            if w.links == MAX_LINKS:
                return WALK
            along = w.along[w.links]
            for i in range(s.rank):
                # The axis that the source's step moves along comes first: most pairs already differ there.
                a = (s.axis[j] + i) % s.rank
                total = 0
                wide = wider = -1
                for n in range(w.first[a], w.first[a + 1]):
                    o = &w.overlaps[n]
                    if wide != width(s, a, o.source) or wider != width(d, a, o.destination):
                        wide = width(s, a, o.source)
                        wider = width(d, a, o.destination)
                        c = condition(s, a, j, wide)
                        e = condition(d, a, k, wider)
                    along[n] = 0
                    if c.possible and e.possible and c.move == e.move:
                        along[n] = links_along(s, d, a, j, k, &c, &e, o)
                        total += along[n]
                if total == 0:
                    break
            else:
                w.source_step[w.links] = j
                w.destination_step[w.links] = k
                w.links += 1
    return DONE


cdef bint whole_words(const Work* w) noexcept nogil:
    """Whether every run starts at whole words on both sides and is whole words long.

    So it is where both sides run fastest along the same axis and all that cuts that axis (overlaps, blocks, rows) cuts
    at whole words. Otherwise nothing is said.
    """
    cdef const SideData* s = w.s
    cdef const SideData* d = w.d
    cdef int64_t n, words = 4 // s.itemsize, mixed
    cdef int a
    cdef const Overlap* o
    if words == 1:
        return True
    if s.digits == 0 or d.digits == 0 or s.axis[0] != d.axis[0] or s.divisor[0] != 1 or d.divisor[0] != 1:
        return False
    a = s.axis[0]
    mixed = s.count[0] | d.count[0]
    for n in range(w.first[a], w.first[a + 1]):
        o = &w.overlaps[n]
        mixed |= o.x0 | o.x1 | o.y0
        if s.count[0] == 0:
            mixed |= width(s, a, o.source)
        if d.count[0] == 0:
            mixed |= width(d, a, o.destination)
    return mixed % words == 0


cdef int64_t reach(const Work* w) noexcept nogil:
    """A number of elements that no run is longer than.

    A run stays within the digits that its links carry through, and within one region.
    """
    cdef int64_t longest[MAX_RANK]
    cdef int64_t product = 1, wide, n, here
    cdef int a, k, side, steps
    cdef const SideData* s
    for a in range(w.s.rank):
        longest[a] = 1
        for n in range(w.first[a], w.first[a + 1]):
            longest[a] = max(longest[a], w.overlaps[n].x1 - w.overlaps[n].x0)
    for a in range(w.s.rank):
        here = longest[a]
        for side in range(2):
            s = w.d if side else w.s
            steps = 0
            for k in range(w.links):
                steps = max(steps, (w.destination_step[k] if side else w.source_step[k]) + 1)
            wide = 1
            for k in range(steps):
                if s.axis[k] == a:
                    if s.count[k] == 0:
                        wide = longest[a]
                    wide = min(wide * max(s.count[k], <int64_t> 1), longest[a])
            here = min(here, wide)
        product *= here
    return product


cdef int find_cuts(Work* w) noexcept nogil:
    """What cutting long runs adds, where runs are lines along one axis or whole lines chained along a second."""
    cdef const SideData* s = w.s
    cdef const SideData* d = w.d
    cdef int64_t most = CUT // s.itemsize, n, length, line = 0
    cdef int k, a = s.axis[0], b = -1
    cdef bint plane = False
    cdef const Overlap* o
    for k in range(w.links):
        if w.source_step[k] != w.destination_step[k] or w.source_step[k] > 1:
            return WALK
        plane = plane or w.source_step[k] == 1
    if d.axis[0] != a or s.divisor[0] != 1 or d.divisor[0] != 1:
        return WALK
    # Lines: a digit that is the rest of its axis on both sides leaves them whole; short blocks need no cut.
    if s.count[0] or d.count[0]:
        if min(s.count[0] or d.count[0], d.count[0] or s.count[0]) > most:
            return WALK
    for n in range(w.first[a], w.first[a + 1]):
        o = &w.overlaps[n]
        length = o.x1 - o.x0
        w.lines[n] = 0 if s.count[0] or d.count[0] else (length - 1) // most
        w.planes[n] = 0
    w.line = a
    if not plane:
        w.cuts = True
        return DONE
    b = s.axis[1]
    if b == a or d.axis[1] != b or s.divisor[1] != 1 or d.divisor[1] != 1:
        return WALK
    # Planes: chains of whole lines, all of one length.
    for n in range(w.first[a], w.first[a + 1]):
        o = &w.overlaps[n]
        length = width(s, a, o.source)
        if s.count[0] and d.count[0]:
            if s.count[0] != d.count[0]:
                return WALK
            line = s.count[0]
            # Whole blocks of the overlap, where the two sides' blocks coincide.
            if (o.y0 - o.x0) % line == 0:
                w.planes[n] = max(o.x1 // line - (o.x0 + line - 1) // line, <int64_t> 0)
        elif s.count[0] or d.count[0]:
            return WALK
        elif o.x1 - o.x0 == length == width(d, a, o.destination):
            if line and line != length:
                return WALK
            line = length
            w.planes[n] = 1
            w.lines[n] = 0      # chained or alone, a whole line is cut with its chain
    if s.count[1] or d.count[1]:
        if min(s.count[1] or d.count[1], d.count[1] or s.count[1]) * line > most:
            return WALK
    w.chain = b
    for n in range(w.first[b], w.first[b + 1]):
        o = &w.overlaps[n]
        w.lines[n] = 0
        w.planes[n] = 0 if s.count[1] or d.count[1] else ((o.x1 - o.x0) * line - 1) // most
    w.cuts = True
    return DONE


cdef int prepare(Work* w, const SideData* s, const SideData* d, const int64_t* offsets, bint share) noexcept nogil:
    """Overlay the axes."""
    cdef int64_t parts = 0, rows = 0, n, first
    cdef int a, k
    cdef char* at
    w.s = s
    w.d = d
    w.links = 0
    w.cuts = False
    w.line = w.chain = -1
    for a in range(s.rank):
        parts += s.parts[a] + d.parts[a]
        rows += s.parts[a] + 1
    w.memory = malloc(parts * (sizeof(Overlap) + (MAX_LINKS + 4) * sizeof(int64_t)) + rows * sizeof(int64_t) + 8)
    if w.memory == NULL:
        return NO_MEMORY
    at = <char*> w.memory
    w.overlaps = <Overlap*> at
    at += parts * sizeof(Overlap)
    for k in range(MAX_LINKS):
        w.along[k] = <int64_t*> at
        at += parts * sizeof(int64_t)
    w.amount = <int64_t*> at
    at += parts * sizeof(int64_t)
    w.lines = <int64_t*> at
    at += parts * sizeof(int64_t)
    w.planes = <int64_t*> at
    at += parts * sizeof(int64_t)
    for a in range(s.rank):
        w.given[a] = <int64_t*> at
        w.taken[a] = w.given[a] + s.parts[a]
        at += (s.parts[a] + d.parts[a]) * sizeof(int64_t)
    first = 1
    for a in range(s.rank - 1, -1, -1):
        w.class_stride[a] = first
        first *= d.parts[a]
    first = 0
    for a in range(s.rank):
        w.row[a] = <int64_t*> at
        at += (s.parts[a] + 1) * sizeof(int64_t)
        w.first[a] = first
        first += overlay(s, d, a, offsets[a], share, w.row[a], w.overlaps + first)
        w.first[a + 1] = first
        for n in range(w.first[a], first):
            w.amount[n] = w.overlaps[n].x1 - w.overlaps[n].x0
        sum_amounts(w, a)
    return DONE


cdef void sum_amounts(Work* w, int a) noexcept nogil:
    """What each partition of an axis gives and takes."""
    cdef int64_t n
    memset(w.given[a], 0, (w.s.parts[a] + w.d.parts[a]) * sizeof(int64_t))
    for n in range(w.first[a], w.first[a + 1]):
        w.given[a][w.overlaps[n].source] += w.amount[n]
        w.taken[a][w.overlaps[n].destination] += w.amount[n]


cdef int decide(Work* w) noexcept nogil:
    """Find the links, and whether they say everything. What they leave open is walked."""
    cdef int status = find_links(w)
    w.unit = w.s.itemsize
    w.divide = 4
    w.uneven = not whole_words(w)
    if status == DONE and w.uneven:
        status = find_lines(w)
    elif status == DONE and reach(w) * w.s.itemsize > CUT:
        status = find_cuts(w)
    return status


# --- uneven copies ---------------------------------------------------------------------------------------------------

# Messages round up to words, and are misaligned where an offset or a size is no whole word. Where runs are lines along
# one axis, words are counted line by line, and offsets are sums over the axes, of which only the remainders matter.

cdef enum:
    MOST_WORDS = 4      # elements in a word, at most
    MOST_STEPS = 1 << 30    # what no count goes through one by one: about half a minute


cdef inline int64_t line_length(const SideData* s, const SideData* d, int64_t x, int64_t y, int64_t end) noexcept nogil:
    """How long the line is that begins at x: to the next block of either side, or the end."""
    cdef int64_t length = end - x
    if s.count[0]:
        length = min(length, s.count[0] - x % s.count[0])
    if d.count[0]:
        length = min(length, d.count[0] - y % d.count[0])
    return length


cdef int find_lines(Work* w) noexcept nogil:
    """Words and cuts of the lines that an uneven copy's runs are; single elements where nothing links."""
    cdef const SideData* s = w.s
    cdef const SideData* d = w.d
    cdef int a = s.axis[0] if s.digits else s.rank - 1
    cdef int64_t n, x, y, size, length
    cdef const Overlap* o
    if w.links > 1 or (w.links == 1 and (w.source_step[0] or w.destination_step[0])) or s.rank == 0:
        return WALK
    if w.links and steps_of_lines(w, a) > MOST_STEPS:
        return WALK
    for n in range(w.first[a], w.first[a + 1]):
        o = &w.overlaps[n]
        w.lines[n] = w.planes[n] = 0
        if w.links == 0:
            continue            # every element is a message of one word
        w.amount[n] = 0
        x = o.x0
        while x < o.x1:
            y = o.y0 + x - o.x0
            length = line_length(s, d, x, y, o.x1)
            size = length * s.itemsize
            w.amount[n] += (size + 3) // 4
            w.lines[n] += (size - 1) // CUT
            x += length
    w.cuts = True
    w.line = a
    w.unit = w.divide = 1
    sum_amounts(w, a)
    return DONE


cdef void strides_mod(const SideData* s, const int64_t* widths, int64_t words, int64_t* strides) noexcept nogil:
    """What a step of every digit adds to the offset, modulo a word."""
    cdef int k
    cdef int64_t stride = 1
    for k in range(s.digits):
        strides[k] = stride % words
        stride = strides[k] * ((s.count[k] if s.count[k] else widths[s.axis[k]] // s.divisor[k]) % words)


cdef inline int64_t remainder(const SideData* s, int a, int64_t x, const int64_t* strides,
                              int64_t words) noexcept nogil:
    """What coordinate x of an axis adds to the offset, modulo a word."""
    cdef int k
    cdef int64_t total = 0
    for k in range(s.digits):
        if s.axis[k] == a:
            total += (x // s.divisor[k] % s.count[k] if s.count[k] else x // s.divisor[k]) % words * strides[k]
    return total % words


cdef inline int64_t rest_divisor(const SideData* s, int a) noexcept nogil:
    """The divisor of an axis' slowest digit; what is below it repeats."""
    cdef int k
    cdef int64_t divisor = 1
    for k in range(s.digits):
        if s.axis[k] == a:
            divisor = max(divisor, s.divisor[k] * max(s.count[k], <int64_t> 1))
    return divisor


cdef inline int64_t kind_of(const Work* w, int a, const Overlap* o) noexcept nogil:
    """The remainders of the widths of an overlap's two partitions."""
    cdef int64_t words = 4 // w.s.itemsize
    return width(w.s, a, o.source) % words * MOST_WORDS + width(w.d, a, o.destination) % words


cdef inline int64_t repeat_of(const Work* w, int a, const Overlap* o) noexcept nogil:
    """The coordinates of an overlap with which the remainders of an axis begin again, or all that it has."""
    cdef int64_t words = 4 // w.s.itemsize, length = o.x1 - o.x0
    if rest_divisor(w.d, a) <= length // words // rest_divisor(w.s, a):
        return words * rest_divisor(w.s, a) * rest_divisor(w.d, a)
    return length


cdef double steps_of_lines(const Work* w, int line) noexcept nogil:
    """How many lines and elements it takes, at most, to count aligned messages: of all kinds, and of every tile."""
    cdef const SideData* s = w.s
    cdef const SideData* d = w.d
    cdef int64_t n, steps, most, block = min(s.count[0] or d.count[0], d.count[0] or s.count[0])
    cdef double combinations = 1, all_ = 0, one = 0
    cdef bint occurs[MOST_WORDS * MOST_WORDS]
    cdef int a, k, kinds
    cdef const Overlap* o
    for a in range(s.rank):
        memset(occurs, 0, sizeof(occurs))
        most = 0
        for n in range(w.first[a], w.first[a + 1]):
            o = &w.overlaps[n]
            occurs[kind_of(w, a, o)] = True
            if a != line:
                steps = repeat_of(w, a, o)
            else:
                steps = (o.x1 - o.x0) // block + 2 if block else 1
            all_ += steps
            most = max(most, steps)
        kinds = 0
        for k in range(MOST_WORDS * MOST_WORDS):
            kinds += occurs[k]
        combinations *= kinds
        all_ += MOST_WORDS * MOST_WORDS
        one += most + MOST_WORDS * MOST_WORDS
    return combinations * all_ + <double> min(s.tiles, d.tiles) * one


cdef int64_t aligned_messages(const Work* w, const int64_t* chosen, const int64_t* kinds) noexcept nogil:
    """How many messages are whole words at whole words on both sides, where they are lines.

    Of one region (an overlap of each axis is `chosen`), or of all whose widths leave certain remainders (`kinds`).
    """
    cdef const SideData* s = w.s
    cdef const SideData* d = w.d
    cdef int64_t words = 4 // s.itemsize, n, x, y, f, g, length, messages, first, period
    cdef int64_t widths[2][MAX_RANK]
    cdef int64_t strides[2][MAX_DIGITS]
    cdef int64_t sum_[MOST_WORDS][MOST_WORDS]
    cdef int64_t here[MOST_WORDS][MOST_WORDS]
    cdef int64_t next_[MOST_WORDS][MOST_WORDS]
    cdef int a, i, j
    cdef const Overlap* o
    for a in range(s.rank):
        if chosen != NULL:
            widths[0][a] = width(s, a, w.overlaps[chosen[a]].source)
            widths[1][a] = width(d, a, w.overlaps[chosen[a]].destination)
        else:
            widths[0][a] = kinds[a] // MOST_WORDS
            widths[1][a] = kinds[a] % MOST_WORDS
    strides_mod(s, widths[0], words, strides[0])
    strides_mod(d, widths[1], words, strides[1])
    memset(sum_, 0, sizeof(sum_))
    sum_[0][0] = 1
    for a in range(s.rank):
        memset(here, 0, sizeof(here))
        first = chosen[a] if chosen != NULL else w.first[a]
        for n in range(first, chosen[a] + 1 if chosen != NULL else w.first[a + 1]):
            o = &w.overlaps[n]
            if chosen == NULL and kind_of(w, a, o) != kinds[a]:
                continue
            # Across the lines, remainders repeat: they have the period of both sides' digits.
            period = o.x1 - o.x0 if a == w.line else repeat_of(w, a, o)
            x = o.x0
            while x < o.x0 + period:
                y = o.y0 + x - o.x0
                if a == w.line:
                    length = line_length(s, d, x, y, o.x1)
                    messages = (length * s.itemsize + CUT - 1) // CUT - (length % words != 0)
                else:
                    length = 1
                    messages = (o.x1 - x - 1) // period + 1
                here[remainder(s, a, x, strides[0], words)][remainder(d, a, y, strides[1], words)] += messages
                x += length
        memset(next_, 0, sizeof(next_))
        for f in range(words * words):
            if sum_[f // words][f % words]:
                for g in range(words * words):
                    i = <int> ((f // words + g // words) % words)
                    j = <int> ((f + g) % words)
                    next_[i][j] += sum_[f // words][f % words] * here[g // words][g % words]
        memcpy(sum_, next_, sizeof(sum_))
    return sum_[0][0]


cdef int64_t all_aligned(const Work* w) noexcept nogil:
    """All aligned messages: over every combination of the kinds of widths that occur."""
    cdef int64_t kinds[MAX_RANK]
    cdef bint occurs[MAX_RANK][MOST_WORDS * MOST_WORDS]
    cdef int64_t n, total = 0
    cdef int a
    for a in range(w.s.rank):
        memset(occurs[a], 0, sizeof(occurs[a]))
        for n in range(w.first[a], w.first[a + 1]):
            occurs[a][kind_of(w, a, &w.overlaps[n])] = True
        kinds[a] = 0
        while kinds[a] < MOST_WORDS * MOST_WORDS and not occurs[a][kinds[a]]:
            kinds[a] += 1
        if kinds[a] == MOST_WORDS * MOST_WORDS:
            return 0
    while True:
        total += aligned_messages(w, NULL, kinds)
        for a in range(w.s.rank - 1, -1, -1):
            kinds[a] += 1
            while kinds[a] < MOST_WORDS * MOST_WORDS and not occurs[a][kinds[a]]:
                kinds[a] += 1
            if kinds[a] < MOST_WORDS * MOST_WORDS:
                break
            kinds[a] = 0
            while not occurs[a][kinds[a]]:
                kinds[a] += 1
        else:
            return total


# --- regions ---------------------------------------------------------------------------------------------------------


cdef struct Region:
    int64_t elements, amount, runs
    int64_t pieces, misaligned      # runs, cut where they are long; and those that are not whole words


cdef Region region(const Work* w, const int64_t* chosen) noexcept nogil:
    """What one overlap per axis comes to."""
    cdef Region r
    cdef int a, k
    cdef int64_t product, lines = 1, planes = 1
    r.elements = r.amount = 1
    for a in range(w.s.rank):
        r.elements *= w.overlaps[chosen[a]].x1 - w.overlaps[chosen[a]].x0
        r.amount *= w.amount[chosen[a]]
    r.runs = r.elements
    for k in range(w.links):
        product = 1
        for a in range(w.s.rank):
            product *= w.along[k][chosen[a]]
        r.runs -= product
    r.pieces = r.runs
    if w.cuts:
        for a in range(w.s.rank):
            product = w.overlaps[chosen[a]].x1 - w.overlaps[chosen[a]].x0
            lines *= w.lines[chosen[a]] if a == w.line else product
            planes *= w.planes[chosen[a]] if a == w.line or a == w.chain else product
        r.pieces += lines + planes
    r.misaligned = 0
    if w.uneven:        # single elements are less than a word
        r.misaligned = r.pieces - (aligned_messages(w, chosen, NULL) if w.links else 0)
    return r


cdef Region all_regions(const Work* w) noexcept nogil:
    """The sum over all regions: the product of the axes' sums."""
    cdef Region r
    cdef int a, k
    cdef int64_t n, total, product, lines = 1, planes = 1, line, plane
    r.elements = 1
    r.amount = 0        # nobody asks
    for a in range(w.s.rank):
        total = line = plane = 0
        for n in range(w.first[a], w.first[a + 1]):
            total += w.overlaps[n].x1 - w.overlaps[n].x0
            if w.cuts and (a == w.line or a == w.chain):
                line += w.lines[n]
                plane += w.planes[n]
        r.elements *= total
        lines *= line if a == w.line else total
        planes *= plane if a == w.line or a == w.chain else total
    r.runs = r.elements
    for k in range(w.links):
        product = 1
        for a in range(w.s.rank):
            total = 0
            for n in range(w.first[a], w.first[a + 1]):
                total += w.along[k][n]
            product *= total
        r.runs -= product
    r.pieces = r.runs + (lines + planes if w.cuts else 0)
    r.misaligned = 0
    if w.uneven:
        r.misaligned = r.pieces - (all_aligned(w) if w.links else 0)
    return r


# --- both sides axis-tiled -------------------------------------------------------------------------------------------

cdef inline void add_words(int64_t* load, int64_t tile, const Work* w, int64_t elements) noexcept nogil:
    if load != NULL:
        load[tile] += elements * w.unit // w.divide


cdef void load_classes(const Work* w, const SideData* side, int64_t** along, const int32_t* device,
                       int64_t copies, int64_t* load) noexcept nogil:
    """Words of each class of an axis-tiled side, products over the axes, for the first `copies` tiles of each."""
    if load == NULL:
        return
    cdef int64_t c, n, product
    cdef int a
    for c in range(side.classes):
        product = w.unit
        for a in range(side.rank):
            product *= along[a][side.partitions[c * side.rank + a]]
        for n in range(side.class_row[c], side.class_row[c] + copies):
            load[tile_of(device, side.ordinals[n])] = product // w.divide


cdef int count_tiled(const Work* w, const Device* v, Totals* t) noexcept nogil:
    """All regions, without those that a tile has of itself, and without what needs no transfer for that."""
    cdef const SideData* s = w.s
    cdef const SideData* d = w.d
    cdef Region r = all_regions(w)
    cdef int64_t chosen[MAX_RANK]
    cdef int64_t c, n, tile, taker
    cdef int a
    cdef int32_t* times = NULL      # how many tiles of this source class have each destination class too
    t.transfers = r.pieces
    t.destinations = r.pieces * d.replicas
    t.elements = r.elements
    t.misaligned = r.misaligned
    load_classes(w, s, <int64_t**> w.given, v.source, 1, v.sent)
    load_classes(w, d, <int64_t**> w.taken, v.destination, d.replicas, v.received)
    if r.elements == 0:
        return DONE
    if s.replicas > 1:
        times = <int32_t*> calloc(d.classes, sizeof(int32_t))
        if times == NULL:
            return NO_MEMORY
    for c in range(s.classes):
        for n in range(s.class_row[c], s.class_row[c + 1]):
            tile = tile_of(v.source, s.ordinals[n])
            taker = v.taker[tile] if tile < v.takers else -1
            if taker < 0:
                continue
            for a in range(s.rank):
                chosen[a] = overlap_of(w, a, s.partitions[c * s.rank + a], d.partitions[taker * s.rank + a])
                if chosen[a] < 0:
                    break
            else:
                r = region(w, chosen)
                t.local_runs += r.runs
                t.destinations -= r.pieces
                add_words(v.received, tile, w, -r.amount)
                if times != NULL:
                    times[taker] += 1
                if (1 if times == NULL else times[taker]) == d.replicas:
                    t.transfers -= r.pieces
                    t.elements -= r.elements
                    t.misaligned -= r.misaligned
                    add_words(v.sent, tile_of(v.source, s.ordinals[s.class_row[c]]), w, -r.amount)
        if times != NULL:
            for n in range(s.class_row[c], s.class_row[c + 1]):
                tile = tile_of(v.source, s.ordinals[n])
                if tile < v.takers and v.taker[tile] >= 0:
                    times[v.taker[tile]] = 0
    free(times)
    return DONE


# A side's tiles, gone through in order. The tile number is a mixed-radix number, so an axis moves when the one before
# it has come round `gap` times.
cdef struct Steps:
    int axes                    # that are cut, fastest first
    int axis[MAX_RANK]
    int64_t gap[MAX_RANK]
    int64_t ticks[MAX_RANK]
    int64_t parts[MAX_RANK]
    int64_t at[MAX_RANK]        # the partition of every axis of the tensor
    const int64_t* along[MAX_RANK]  # elements of each partition
    int64_t unit
    int64_t slow                # bytes: the product over all axes but the fastest


cdef void weigh(Steps* p, const SideData* s) noexcept nogil:
    """The product over all axes but the fastest."""
    cdef int a
    p.slow = p.unit
    for a in range(s.rank):
        if p.axes == 0 or a != p.axis[0]:
            p.slow *= p.along[a][p.at[a]]


cdef void start_steps(Steps* p, const SideData* s, int64_t** along, int64_t unit) noexcept nogil:
    cdef int a, k, n = 0
    cdef int64_t running = 1
    p.unit = unit
    for a in range(s.rank):
        p.at[a] = 0
        p.along[a] = along[a]
        if s.parts[a] > 1:
            k = n
            while k and s.stride[p.axis[k - 1]] > s.stride[a]:
                p.axis[k] = p.axis[k - 1]
                k -= 1
            p.axis[k] = a
            n += 1
    p.axes = n
    for k in range(n):
        a = p.axis[k]
        p.parts[k] = s.parts[a]
        p.gap[k] = s.stride[a] // running
        p.ticks[k] = 0
        running = s.stride[a] * s.parts[a]
    weigh(p, s)


cdef inline int64_t weight(const Steps* p) noexcept nogil:
    """Bytes of the tile where the steps are."""
    return p.slow * p.along[p.axis[0]][p.at[p.axis[0]]] if p.axes else p.slow


cdef inline void step(Steps* p, const SideData* s) noexcept nogil:
    cdef int k
    for k in range(p.axes):
        p.ticks[k] += 1
        if p.ticks[k] < p.gap[k]:
            break
        p.ticks[k] = 0
        p.at[p.axis[k]] += 1
        if p.at[p.axis[k]] < p.parts[k]:
            break
        p.at[p.axis[k]] = 0
    else:
        k = p.axes
    if k:
        weigh(p, s)


cdef int64_t count_stepped(const Work* w, int64_t* sent, int64_t* received, Totals* t) noexcept nogil:
    """`count_tiled` where tiles are stepped through in their own order and the source has no replicas.

    Returns the bound: the largest words of a tile, sent or received. `sent` and `received` may be NULL.
    """
    cdef const SideData* s = w.s
    cdef const SideData* d = w.d
    cdef Region r = all_regions(w)
    cdef Steps source, destination
    cdef int64_t chosen[MAX_RANK]
    cdef int64_t tile, gives, takes_, bound = 0
    cdef int a
    t.transfers = r.pieces
    t.destinations = r.pieces * d.replicas
    t.elements = r.elements
    t.misaligned = r.misaligned
    if r.elements == 0:
        return 0
    start_steps(&source, s, <int64_t**> w.given, w.unit)
    start_steps(&destination, d, <int64_t**> w.taken, w.unit)
    for tile in range(max(s.tiles, d.tiles)):
        gives = weight(&source) if tile < s.tiles else 0
        takes_ = weight(&destination) if tile < d.tiles else 0
        if gives and takes_:
            for a in range(s.rank - 1, -1, -1):
                chosen[a] = overlap_of(w, a, source.at[a], destination.at[a])
                if chosen[a] < 0:
                    break
            else:
                r = region(w, chosen)
                t.local_runs += r.runs
                t.destinations -= r.pieces
                takes_ -= r.amount * w.unit
                if d.replicas == 1:
                    t.transfers -= r.pieces
                    t.elements -= r.elements
                    t.misaligned -= r.misaligned
                    gives -= r.amount * w.unit
        if sent != NULL:
            sent[tile] += gives // w.divide
            received[tile] += takes_ // w.divide
        bound = max(bound, max(gives, takes_))
        step(&source, s)
        step(&destination, d)
    return bound // w.divide


# --- one side linear -------------------------------------------------------------------------------------------------


cdef bint runs_along_rows(const SideData* side) noexcept nogil:
    """Whether a row's elements stand side by side in storage."""
    cdef int k
    if side.digits and side.axis[0] == side.rank - 1:
        return side.divisor[0] == 1 and side.count[0] == 0
    for k in range(side.digits):
        if side.axis[k] == side.rank - 1:
            return False
    return True


cdef int decide_linear(Work* w, bint to_linear, const int64_t* shape) noexcept nogil:
    """Whether every overlap of a piece is one run of whole words; what the closed form leaves open is walked."""
    cdef const SideData* line = w.d if to_linear else w.s
    cdef const SideData* box = w.s if to_linear else w.d
    cdef int last = line.rank - 1
    cdef int64_t n, mixed = line.grain | shape[last], most = CUT // line.itemsize, messages = 0
    cdef const Overlap* o
    if line.scattered or not runs_along_rows(box):
        return WALK
    w.longest = 0
    w.unit = line.itemsize
    w.divide = 4
    for n in range(w.first[last], w.first[last + 1]):
        o = &w.overlaps[n]
        mixed |= o.x0 | o.x1 | o.y0 | width(box, last, o.source if to_linear else o.destination)
        w.longest = max(w.longest, o.x1 - o.x0)
        w.lines[n] = messages
        messages += (o.x1 - o.x0 + most - 1) // most
    return WALK if mixed % (4 // line.itemsize) else DONE


cdef bint lines_are_words(Work* w, const int64_t* shape) noexcept nogil:
    """Whether two linear sides of one shape are cut at whole words everywhere."""
    cdef int64_t mixed = w.s.grain | w.d.grain | shape[w.s.rank - 1]
    w.unit = w.s.itemsize
    w.divide = 4
    return not w.s.scattered and not w.d.scattered and mixed % (4 // w.s.itemsize) == 0


cdef inline int64_t begin_on_line(const Overlap* o, bint to_linear) noexcept nogil:
    """Where an overlap begins, in coordinates of the linear side, which has the axis whole."""
    return o.y0 if to_linear else o.x0


cdef inline int64_t end_on_line(const Overlap* o, bint to_linear) noexcept nogil:
    return begin_on_line(o, to_linear) + o.x1 - o.x0


cdef inline int64_t box_part(const Overlap* o, bint to_linear) noexcept nogil:
    """The axis-tiled side's partition of an overlap."""
    return o.source if to_linear else o.destination


cdef inline int64_t overlap_at(const Overlap* overlaps, int64_t low, int64_t high, int64_t x,
                               bint to_linear) noexcept nogil:
    """Which of the last axis' overlaps low..high coordinate x is in; they follow each other without a gap."""
    cdef int64_t middle
    if end_on_line(&overlaps[low], to_linear) > x:
        return low
    while low < high:
        middle = (low + high) >> 1
        if end_on_line(&overlaps[middle], to_linear) > x:
            high = middle
        else:
            low = middle + 1
    return low


cdef inline int64_t covered_pieces(const Overlap* o, bint to_linear, int64_t low, int64_t high,
                                   int64_t most) noexcept nogil:
    """Messages that the part of an overlap in [low, high) takes."""
    return (min(high, end_on_line(o, to_linear)) - max(low, begin_on_line(o, to_linear)) + most - 1) // most


cdef int32_t* outer_overlaps(const Work* w, bint to_linear, const int64_t* shape, int32_t** table) noexcept nogil:
    """The overlap that each coordinate of the linear side is in, -1 for none, for all axes but the last.

    `table` points into the memory that is returned, which the caller frees; NULL where there was none.
    """
    cdef int a
    cdef int64_t extents = 0, n, k
    cdef const Overlap* o
    cdef int32_t* memory
    for a in range(w.s.rank - 1):
        extents += shape[a]
    memory = <int32_t*> malloc((extents + 1) * sizeof(int32_t))
    if memory == NULL:
        return NULL
    memset(memory, 0xff, extents * sizeof(int32_t))
    extents = 0
    for a in range(w.s.rank - 1):
        table[a] = memory + extents
        extents += shape[a]
        for n in range(w.first[a], w.first[a + 1]):
            o = &w.overlaps[n]
            for k in range(begin_on_line(o, to_linear), end_on_line(o, to_linear)):
                table[a][k] = <int32_t> n
    return memory


cdef int count_linear(const Work* w, const Device* v, bint to_linear, const int64_t* shape, Totals* t) noexcept nogil:
    """A linear side's pieces against the partitions of the last axis that they meet; one run each."""
    cdef const SideData* line = w.d if to_linear else w.s
    cdef const SideData* box = w.s if to_linear else w.d
    cdef int last = line.rank - 1, a
    cdef int64_t most = CUT // line.itemsize, columns = shape[last]
    cdef int64_t at[MAX_RANK]
    cdef int32_t* table[MAX_RANK]
    cdef int32_t* memory
    cdef const Overlap* o
    cdef const Overlap* overlaps = w.overlaps + w.first[last]
    cdef const int64_t* before = w.lines + w.first[last]
    cdef int64_t count = w.first[last + 1] - w.first[last]
    cdef int64_t n, k, i, row = -1, rest, middle, tile, mine, part, size, pieces, low, high, ordinal
    cdef int64_t begin = begin_on_line(overlaps, to_linear) if count else 0
    cdef int64_t end = end_on_line(overlaps + count - 1, to_linear) if count else 0
    cdef const int32_t* owner = v.destination if to_linear else v.source
    cdef const int32_t* held = v.holder if to_linear else v.taker
    cdef int64_t holders = v.holders if to_linear else v.takers
    cdef bint outside = False
    memory = outer_overlaps(w, to_linear, shape, table)
    if memory == NULL:
        return NO_MEMORY
    if to_linear:
        load_classes(w, box, <int64_t**> w.given, v.source, 1, v.sent)
    else:
        load_classes(w, box, <int64_t**> w.taken, v.destination, box.replicas, v.received)
    n = 0
    for ordinal in range(line.tiles):
        tile = tile_of(owner, ordinal)
        mine = held[tile] if tile < holders else -1
        for i in range(line.piece_row[ordinal], line.piece_row[ordinal + 1]):
            if line.piece_begin[i] // columns != row:
                row = line.piece_begin[i] // columns
                n = 0
                rest = row
                outside = False
                for a in range(last - 1, -1, -1):
                    middle = table[a][rest % shape[a]]
                    rest = rest // shape[a]
                    outside = outside or middle < 0
                    at[a] = box_part(&w.overlaps[middle], to_linear) if middle >= 0 else -1
            low = max(line.piece_begin[i] - row * columns, begin)
            high = min(line.piece_begin[i + 1] - row * columns, end)
            if outside or low >= high:
                continue
            # n is the first overlap that [low, high) meets, k the last.
            n = overlap_at(overlaps, n, count - 1, low, to_linear)
            k = overlap_at(overlaps, n, count - 1, high - 1, to_linear)
            pieces = k - n + 1
            if w.longest > most:
                pieces = covered_pieces(&overlaps[n], to_linear, low, high, most)
                if k > n:
                    pieces += covered_pieces(&overlaps[k], to_linear, low, high, most)
                    pieces += before[k] - before[n + 1]
            t.transfers += pieces
            t.destinations += pieces * w.d.replicas
            t.elements += high - low
            add_words(v.received if to_linear else v.sent, tile, w, high - low)
            if mine >= 0:
                # The part that this tile has (or takes) itself.
                for a in range(last):
                    if box.partitions[mine * box.rank + a] != at[a]:
                        break
                else:
                    part = box.partitions[mine * box.rank + last]
                    middle = overlap_of(w, last, part, 0) if to_linear else overlap_of(w, last, 0, part)
                    middle -= w.first[last]
                    if n <= middle <= k:
                        o = &overlaps[middle]
                        size = min(high, end_on_line(o, to_linear)) - max(low, begin_on_line(o, to_linear))
                        pieces = covered_pieces(o, to_linear, low, high, most)
                        t.local_runs += 1
                        t.destinations -= pieces
                        add_words(v.received, tile, w, -size)
                        if to_linear:
                            add_words(v.sent, tile_of(v.source, box.ordinals[box.class_row[mine]]), w, -size)
                        elif box.replicas == 1:
                            add_words(v.sent, tile, w, -size)
                        if w.d.replicas == 1:
                            t.transfers -= pieces
                            t.elements -= size
            n = k
    free(memory)
    return DONE


cdef void count_lines(const Work* w, const Device* v, Totals* t) noexcept nogil:
    """Both sides linear, of one shape: pieces against pieces."""
    cdef const SideData* s = w.s
    cdef const SideData* d = w.d
    cdef int64_t most = CUT // s.itemsize, i = 0, o = 0, p, size, q, tile, other
    for p in range(d.tiles):
        tile = tile_of(v.destination, p)
        for q in range(d.piece_row[p], d.piece_row[p + 1]):
            while True:
                while s.piece_row[o + 1] <= i:
                    o += 1
                size = min(d.piece_begin[q + 1], s.piece_begin[i + 1]) - max(d.piece_begin[q], s.piece_begin[i])
                other = tile_of(v.source, o)
                if other == tile:
                    t.local_runs += 1
                else:
                    t.transfers += (size + most - 1) // most
                    t.elements += size
                    add_words(v.sent, other, w, size)
                    add_words(v.received, tile, w, size)
                if s.piece_begin[i + 1] > d.piece_begin[q + 1]:
                    break
                i += 1
                if s.piece_begin[i] == d.piece_begin[q + 1]:
                    break
    t.destinations = t.transfers


# --- the face --------------------------------------------------------------------------------------------------------


cdef class Analysis:
    """One copy without a view, overlaid and decided; read by any number of threads.

    `decided` says whether the closed form holds; otherwise the copy has to be walked.
    """

    def __cinit__(self):
        self.work.memory = NULL

    def __init__(self, SideTable source not None, SideTable destination not None, const int64_t[::1] offsets not None,
                 bint share, const int64_t[::1] shape not None, bint same, device):
        """`shape` is a linear side's, `same` whether two linear sides are of one shape and not offset.

        `device` says where the tiles are, and is needed (with both sides' classes) by all but counts of tiles that are
        stepped through: the device tile of each source ordinal, the source's ordinals by device tile, the device tile
        of each destination ordinal (None for the identity), and the class that device tiles hold on both sides.
        """
        cdef const SideData* s = &source.data
        cdef const SideData* d = &destination.data
        cdef Device* v = &self.device
        cdef const int32_t[::1] tiles
        cdef int status
        self.source, self.destination = source, destination
        self.kept = (shape, device)
        self.shape = &shape[0] if s.rank else NULL
        memset(v, 0, sizeof(Device))
        if device is not None:
            source_device, order, destination_device, holder, taker = device
            if source_device is not None:
                tiles = source_device
                v.source = &tiles[0]
                tiles = order
                v.order = &tiles[0]
            if destination_device is not None:
                tiles = destination_device
                v.destination = &tiles[0]
            tiles = holder
            v.holder = &tiles[0]
            v.holders = tiles.shape[0]
            tiles = taker
            v.taker = &tiles[0]
            v.takers = tiles.shape[0]
        with nogil:
            status = prepare(&self.work, s, d, &offsets[0] if s.rank else NULL, share)
            if status == DONE:
                if s.linear and d.linear:
                    status = DONE if same and lines_are_words(&self.work, self.shape) else WALK
                elif s.linear or d.linear:
                    status = decide_linear(&self.work, d.linear, self.shape)
                else:
                    status = decide(&self.work)
        if status == NO_MEMORY:
            raise MemoryError
        self.decided = status == DONE

    def __dealloc__(self):
        free(self.work.memory)

    def count(self, int64_t[::1] sent=None, int64_t[::1] received=None):
        """Transfers, destinations, local runs, elements and misaligned transfers; None where they have to be walked.

        Adds the words of every device tile to `sent` and `received`, which are zero at first.
        """
        cdef Totals t
        cdef int status
        cdef int64_t* sends = &sent[0] if sent is not None else NULL
        cdef int64_t* receives = &received[0] if received is not None else NULL
        if not self.decided:
            return None
        with nogil:
            status = count_decided(&self.work, self.shape, &self.device, sends, receives, &t)
        if status == NO_MEMORY:
            raise MemoryError
        return t.transfers, t.destinations, t.local_runs, t.elements, t.misaligned


cdef int count_decided(const Work* w, const int64_t* shape, const Device* device, int64_t* sent, int64_t* received,
                       Totals* t) noexcept nogil:
    cdef Device v = device[0]
    v.sent = sent
    v.received = received
    memset(t, 0, sizeof(Totals))
    if w.s.linear and w.d.linear:
        count_lines(w, &v, t)
        return DONE
    if w.s.linear or w.d.linear:
        return count_linear(w, &v, w.d.linear, shape, t)
    if v.taker == NULL:     # then both sides can be stepped through
        count_stepped(w, sent, received, t)
        return DONE
    return count_tiled(w, &v, t)


def count_many(list sources not None, list destinations not None, const int64_t[:, ::1] offsets not None,
               const uint8_t[::1] share not None, int64_t[:, ::1] out not None):
    """Count copies between axis-tiled sides that are stepped through: n pairs, offsets (n, at least their rank).

    `out` is (5, n): transfers, bytes, misaligned, local runs, bound; transfers are -1 where a copy has to be walked.
    """
    cdef int64_t i, n = len(sources)
    cdef int status = DONE
    cdef SideTable table
    cdef Totals t
    cdef Work w
    cdef const SideData** pairs = <const SideData**> malloc((2 * n + 1) * sizeof(void*))
    if pairs == NULL:
        raise MemoryError
    for i in range(n):
        table = sources[i]
        pairs[2 * i] = &table.data
        table = destinations[i]
        pairs[2 * i + 1] = &table.data
    with nogil:
        for i in range(n):
            w.memory = NULL
            status = prepare(&w, pairs[2 * i], pairs[2 * i + 1], &offsets[i, 0], share[i])
            if status == NO_MEMORY:
                break
            out[0, i] = -1
            if decide(&w) == DONE:
                memset(&t, 0, sizeof(Totals))
                out[4, i] = count_stepped(&w, NULL, NULL, &t)
                out[0, i] = t.transfers
                out[1, i] = t.elements * w.s.itemsize
                out[2, i] = t.misaligned
                out[3, i] = t.local_runs
            free(w.memory)
    free(pairs)
    if status == NO_MEMORY:
        raise MemoryError
