"""Digits of an element order: coordinates to offsets and back, spans of boxes, and what boxes leave uncovered.

A digit table is (digits, 3) int64: axis, divisor, count, slowest first; count 0 stands for the rest of the axis' width.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc

# The upper half of a 64-bit product, which C itself does not have.
cdef extern from *:
    """
    #if defined(__SIZEOF_INT128__)
    static inline uint64_t tiling_high_product(uint64_t a, uint64_t b) {
        return (uint64_t)(((unsigned __int128)a * b) >> 64);
    }
    #elif defined(_MSC_VER) && defined(_M_X64)
    #include <intrin.h>
    static inline uint64_t tiling_high_product(uint64_t a, uint64_t b) { return __umulh(a, b); }
    #else
    static inline uint64_t tiling_high_product(uint64_t a, uint64_t b) {
        uint64_t low = 0xffffffffu, a0 = a & low, a1 = a >> 32, b0 = b & low, b1 = b >> 32;
        uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
        return a1 * b1 + (middle >> 32) + (((middle & low) + a0 * b1) >> 32);
    }
    #endif
    """
    uint64_t high_product "tiling_high_product" (uint64_t a, uint64_t b) noexcept nogil


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


# --- division without dividing ---------------------------------------------------------------------------------------
#
# For 1 <= d < 2^63 and L = ceil(log2(d)), let m = ceil(2^(63+L) / d) = (2^(63+L) + e) / d, with 0 <= e < d <= 2^L. Then
# for 0 <= x < 2^63
#
#     m * x / 2^(63+L)  =  x / d  +  e * x / (d * 2^(63+L))      and      e * x < 2^L * 2^63,
#
# so the product is over x / d by less than 1 / d, and its floor is x // d. m < 2^64: this is 2^63 where d = 2^L, and
# else d >= 2^(L-1) + 1 gives 2^(63+L) / d <= 2^64 - 2^64 / (2^(L-1) + 1) < 2^64 - 1. The product's shift by 63 is the
# upper half of m * 2x.

cdef struct Reciprocal:
    uint64_t multiplier
    int shift


cdef Reciprocal reciprocal(int64_t divisor) noexcept nogil:
    """What `divide` needs for a divisor from 1."""
    cdef Reciprocal r = Reciprocal(<uint64_t> 1 << 63, 0)
    cdef uint64_t d = <uint64_t> divisor, rest
    cdef int _bit
    while (<uint64_t> 1 << r.shift) < d:
        r.shift += 1
    if (<uint64_t> 1 << r.shift) == d:
        return r
    # Long division of 2^(63 + shift): its leading bits are less than d, and 64 bits follow.
    rest = <uint64_t> 1 << (r.shift - 1)
    r.multiplier = 0
    for _bit in range(64):
        rest <<= 1
        r.multiplier <<= 1
        if rest >= d:
            rest -= d
            r.multiplier += 1
    r.multiplier += rest > 0
    return r


cdef inline uint64_t divide(uint64_t x, Reciprocal r) noexcept nogil:
    """x // divisor for x < 2^63; any number for others."""
    return high_product(x << 1, r.multiplier) >> r.shift


cdef inline bint is_power(int64_t n) noexcept nogil:
    return n & (n - 1) == 0


cdef inline int log2_up(int64_t n) noexcept nogil:
    """The exponent of the smallest power of two that is not below n >= 1."""
    cdef int k = 0
    while (<uint64_t> 1 << k) < <uint64_t> n:
        k += 1
    return k


# --- coordinates to offsets ------------------------------------------------------------------------------------------
#
# An offset is a sum of one function per axis, and an axis' function is
#
#     f(x) = low[x % period] + (x // period) * stride
#
# where `period` is the divisor of its slowest digit. A power of two is taken off by a mask and a shift; the axis of any
# other period has its whole width in the table, rounded up to a power of two. Where the table would be too long for the
# cache, or for a list so short, digits are taken one by one, by reciprocals.
#
# Rows are taken in blocks. Ranges are checked by signs: x or width - 1 - x is negative where x is outside, so the loops
# only collect sign bits, and the row is looked for when a block has one. Until then any x must be harmless: the mask
# keeps it inside of the table, and arithmetic is unsigned.

cdef enum:
    BLOCK = 512             # rows; their coordinates and offsets stay in the fastest cache
    LONGEST_TABLE = 32768   # entries of one axis, 256 KB
    ALWAYS_TABLE = 64       # a table that short costs nothing
    AXIS_DIGITS = 4         # an axis has at most four digits

cdef struct AxisMap:
    uint64_t last           # the largest coordinate
    const uint64_t* low     # the table form; NULL if there is none
    uint64_t mask, stride
    int shift
    int digits              # the digit by digit form, by descending divisor
    uint64_t divisor[AXIS_DIGITS]
    uint64_t weight[AXIS_DIGITS]
    Reciprocal by[AXIS_DIGITS]


cdef inline uint64_t digit_by_digit(const AxisMap* a, uint64_t x) noexcept nogil:
    """An axis' function. Every divisor divides the one before, so the remainder is all that the next digit needs."""
    cdef uint64_t total = 0, value
    cdef int k
    for k in range(a.digits):
        value = divide(x, a.by[k])
        x -= value * a.divisor[k]
        total += value * a.weight[k]
    return total


cdef void load_axis(AxisMap* a, int axis, int64_t width, const Digit* digits, int n, int64_t itemsize) noexcept nogil:
    """An axis' function, but for the table."""
    cdef int k, m
    a.last = <uint64_t> width - 1
    a.low = NULL
    a.digits = 0
    for k in range(n):
        if digits[k].axis == axis:
            m = a.digits
            while m > 0 and a.divisor[m - 1] < <uint64_t> digits[k].divisor:
                a.divisor[m] = a.divisor[m - 1]
                a.weight[m] = a.weight[m - 1]
                m -= 1
            a.divisor[m] = <uint64_t> digits[k].divisor
            a.weight[m] = <uint64_t> (digits[k].stride * itemsize)
            a.digits += 1
    for k in range(a.digits):
        a.by[k] = reciprocal(<int64_t> a.divisor[k])
    # Without a digit, the one coordinate is 0. With a table of the whole width, nothing is left above the mask.
    a.shift = log2_up(<int64_t> a.divisor[0]) if a.digits else 0
    if a.digits and (<uint64_t> 1 << a.shift) != a.divisor[0]:
        a.shift = log2_up(width)
    a.mask = (<uint64_t> 1 << a.shift) - 1
    a.stride = a.weight[0] if a.digits else 0


cdef void fill_table(AxisMap* a, uint64_t* low) noexcept nogil:
    """An axis' table: from each digit's divisor up to the next one's, it repeats itself with steps of its weight."""
    cdef uint64_t x, divisor, until, entries = a.mask + 1, used = min(entries, a.last + 1)
    cdef int k
    for x in range(entries):
        low[x] = 0
    for k in range(a.digits - 1, -1, -1):
        divisor = a.divisor[k]
        until = min(a.divisor[k - 1], used) if k else used
        for x in range(divisor, until):
            low[x] = low[x - divisor] + a.weight[k]
    a.low = low


cdef uint64_t add_axis(const AxisMap* a, const int64_t* at, int rank, int64_t rows, bint add,
                       uint64_t* out) noexcept nogil:
    """Add an axis' function of a column of coordinates to offsets, or begin them with it. Negative: one is outside."""
    cdef uint64_t bad = 0, x, last = a.last, mask = a.mask, stride = a.stride
    cdef const uint64_t* low = a.low
    cdef int shift = a.shift
    cdef int64_t i
    for i in range(rows):
        x = <uint64_t> at[i * rank]
        bad |= x | (last - x)
        out[i] = (out[i] if add else 0) + low[x & mask] + (x >> shift) * stride
    return bad


cdef uint64_t add_axis_by_digits(const AxisMap* a, const int64_t* at, int rank, int64_t rows, bint add,
                                 uint64_t* out) noexcept nogil:
    """`add_axis` without a table."""
    cdef uint64_t bad = 0, x
    cdef int64_t i
    for i in range(rows):
        x = <uint64_t> at[i * rank]
        bad |= x | (a.last - x)
        out[i] = (out[i] if add else 0) + digit_by_digit(a, x)
    return bad


cdef uint64_t add_two_axes(const AxisMap* a, const int64_t* at, int64_t rows, uint64_t* out) noexcept nogil:
    """Offsets of a matrix, both axes in table form: the same as `add_axis` twice, in one pass."""
    cdef uint64_t bad = 0, x, y, last0 = a[0].last, mask0 = a[0].mask, stride0 = a[0].stride
    cdef uint64_t last1 = a[1].last, mask1 = a[1].mask, stride1 = a[1].stride
    cdef const uint64_t* low0 = a[0].low
    cdef const uint64_t* low1 = a[1].low
    cdef int shift0 = a[0].shift, shift1 = a[1].shift
    cdef int64_t i
    for i in range(rows):
        x = <uint64_t> at[2 * i]
        y = <uint64_t> at[2 * i + 1]
        bad |= x | (last0 - x) | y | (last1 - y)
        out[i] = low0[x & mask0] + (x >> shift0) * stride0 + low1[y & mask1] + (y >> shift1) * stride1
    return bad


cdef uint64_t add_axes(const AxisMap* a, int rank, const int64_t* at, int64_t rows, uint64_t* out) noexcept nogil:
    """Offsets of a block of rows. Negative: some coordinate was outside."""
    cdef uint64_t bad = 0
    cdef int k
    if rank == 2 and a[0].low != NULL and a[1].low != NULL:
        return add_two_axes(a, at, rows, out)
    for k in range(rank):
        if a[k].low != NULL:
            bad |= add_axis(a + k, at + k, rank, rows, k > 0, out)
        else:
            bad |= add_axis_by_digits(a + k, at + k, rank, rows, k > 0, out)
    return bad


cdef int64_t first_outside(const int64_t* at, const int64_t* widths, int rank, int64_t row, int64_t end) noexcept nogil:
    """The first of some rows that has a coordinate outside of the widths; -1 if there is none (any more)."""
    cdef int k
    for row in range(row, end):
        for k in range(rank):
            if <uint64_t> at[row * rank + k] >= <uint64_t> widths[k]:
                return row
    return -1


cdef uint64_t* load_axes(AxisMap* axis, const int64_t* widths, int rank, const Digit* digits, int n, int64_t itemsize,
                         int64_t rows) noexcept nogil:
    """The axes' functions, for a list of `rows`. Returns the memory of their tables; NULL if there is not enough."""
    # Filling an entry takes less than half of what it saves a row.
    cdef uint64_t longest = <uint64_t> min(max(2 * rows, ALWAYS_TABLE), LONGEST_TABLE), entries = 0
    cdef uint64_t* tables
    cdef int k
    for k in range(rank):
        load_axis(&axis[k], k, widths[k], digits, n, itemsize)
        if axis[k].mask < longest:
            entries += axis[k].mask + 1
    tables = <uint64_t*> malloc(max(entries, <uint64_t> 1) * sizeof(uint64_t))
    if tables == NULL:
        return NULL
    entries = 0
    for k in range(rank):
        if axis[k].mask < longest:
            fill_table(&axis[k], tables + entries)
            entries += axis[k].mask + 1
    return tables


def fill_offsets(const int64_t[:, ::1] table not None, const int64_t[::1] widths not None, int64_t itemsize,
                 const int64_t[:, ::1] coordinates not None, int64_t[::1] out not None):
    """Byte offsets of coordinates (n, rank). Returns -1, or the first row that lies outside the widths."""
    cdef Digit digits[MAX_DIGITS]
    cdef AxisMap axis[MAX_RANK]
    cdef int n, k, rank = <int> coordinates.shape[1]
    cdef int64_t row = 0, end, rows = coordinates.shape[0], bad = -1
    cdef uint64_t* tables
    cdef const int64_t* at
    if rows == 0:
        return -1
    if rank == 0:
        out[:] = 0
        return -1
    for k in range(rank):
        if widths[k] == 0:      # nothing is inside, and strides may be anything
            return 0
    with nogil:
        at = &coordinates[0, 0]
        n = load_digits(first(table), <int> table.shape[0], &widths[0], digits)
        tables = load_axes(axis, &widths[0], rank, digits, n, itemsize, rows)
        if tables == NULL:
            with gil:
                raise MemoryError()
        while row < rows and bad < 0:
            end = min(row + BLOCK, rows)
            if <int64_t> add_axes(axis, rank, at + row * rank, end - row, <uint64_t*> &out[row]) < 0:
                bad = first_outside(at, &widths[0], rank, row, end)
            row = end
        free(tables)
    return bad


# --- offsets to coordinates ------------------------------------------------------------------------------------------
#
# The fastest digits are one lookup: a table has the coordinates of every element of the block that they span. What is
# above goes digit by digit: the quotient by a digit's count (by its reciprocal) is left for the slower digits, the
# remainder is the digit. All that is left in the end is the slowest digit. A matrix with one digit of each axis above
# the block is done in one pass; with a block that is a power of two, if there is one that leaves so few.

cdef enum:
    LONGEST_BLOCK = 1024    # elements of the table

cdef struct Inverse:
    uint64_t last           # the last byte
    uint64_t within         # itemsize - 1: these bits of an offset are 0
    int itemsize_log2
    int rank
    uint64_t block          # elements
    int bits                # log2 of the block; -1 if it is no power of two
    Reciprocal by_block
    const uint64_t* low     # (block, rank)
    int digits              # the digits above, fastest first
    int axis[MAX_DIGITS]
    uint64_t count[MAX_DIGITS]
    uint64_t divisor[MAX_DIGITS]
    Reciprocal by[MAX_DIGITS]


cdef void put_digit(Inverse* a, int axis, int64_t count, int64_t divisor) noexcept nogil:
    a.axis[a.digits] = axis
    a.count[a.digits] = <uint64_t> count
    a.divisor[a.digits] = <uint64_t> divisor
    a.by[a.digits] = reciprocal(count)
    a.digits += 1


cdef int load_inverse(Inverse* a, const Digit* digits, int n, uint64_t longest, bint powers) noexcept nogil:
    """A block of at most `longest` elements and the digits above it. Returns how many digits are in the block.

    With `powers` the block is a power of two. A matrix gets a digit of each axis above the block, if it has fewer.
    """
    cdef int k = n - 1
    a.block = 1
    while k >= 0 and <uint64_t> digits[k].count <= longest // a.block and (not powers or is_power(digits[k].count)):
        a.block *= <uint64_t> digits[k].count
        k -= 1
    a.bits = log2_up(<int64_t> a.block) if is_power(<int64_t> a.block) else -1
    a.by_block = reciprocal(<int64_t> a.block)
    a.digits = 0
    if a.rank == 2 and k < 1:
        put_digit(a, 1 - digits[0].axis if k == 0 else 0, 1, 1)
        if k < 0:
            put_digit(a, 1, 1, 1)
    n -= k + 1
    while k >= 0:
        put_digit(a, digits[k].axis, digits[k].count, digits[k].divisor)
        k -= 1
    return n


cdef inline bint splits_in_two(const Inverse* a) noexcept nogil:
    """A matrix with one digit of each axis above the block."""
    return a.rank == 2 and a.digits == 2 and a.axis[0] != a.axis[1]


cdef void fill_block(Inverse* a, const Digit* digits, int n, uint64_t* low) noexcept nogil:
    """The coordinates of the elements of a block of `n` digits: each adds copies of what the faster ones span."""
    cdef int64_t have = 1, size, i, value
    cdef int k, rank = a.rank
    for k in range(rank):
        low[k] = 0
    for k in range(n - 1, -1, -1):
        size = have * rank
        for value in range(1, digits[k].count):
            for i in range(size):
                low[value * size + i] = low[i]
            for i in range(have):
                low[value * size + i * rank + digits[k].axis] += <uint64_t> (value * digits[k].divisor)
        have *= digits[k].count
    a.low = low


cdef inline uint64_t split_block(uint64_t element, uint64_t block, int bits, Reciprocal by,
                                 uint64_t* low) noexcept nogil:
    """The number of an element's block, and in `low` its place there; inside of the block, whatever the element is."""
    cdef uint64_t above
    if bits >= 0:
        low[0] = element & (block - 1)
        return element >> bits
    above = divide(element, by)
    low[0] = element - above * block
    if low[0] >= block:
        low[0] = 0
    return above


cdef uint64_t look_up(const Inverse* a, const int64_t* offsets, int64_t rows, uint64_t* rest,
                      uint64_t* out) noexcept nogil:
    """The block's part of the coordinates, and what is left for the digits above. Negative: some offset was bad."""
    cdef uint64_t bad = 0, v, low
    cdef int64_t i
    cdef int k, rank = a.rank
    for i in range(rows):
        v = <uint64_t> offsets[i]
        bad |= v | (a.last - v) | (0 - (v & a.within))
        rest[i] = split_block(v >> a.itemsize_log2, a.block, a.bits, a.by_block, &low)
        for k in range(rank):
            out[i * rank + k] = a.low[low * rank + k]
    return bad


cdef void add_digit(const Inverse* a, int digit, int64_t rows, uint64_t* rest, uint64_t* out) noexcept nogil:
    """Take a digit off the rest and add it to its coordinate; the slowest is all of the rest."""
    cdef uint64_t value, quotient, count = a.count[digit], divisor = a.divisor[digit]
    cdef Reciprocal by = a.by[digit]
    cdef int64_t i
    cdef int rank = a.rank
    out += a.axis[digit]
    if digit == a.digits - 1:
        for i in range(rows):
            out[i * rank] += rest[i] * divisor
        return
    for i in range(rows):
        value = rest[i]
        quotient = divide(value, by)
        rest[i] = quotient
        out[i * rank] += (value - quotient * count) * divisor


cdef uint64_t split_in_two(const Inverse* a, const int64_t* offsets, int64_t rows, uint64_t* out) noexcept nogil:
    """Coordinates if `splits_in_two`: the same as `look_up` and `add_digit` twice, in one pass."""
    cdef uint64_t bad = 0, v, low, value, quotient, last = a.last, within = a.within
    cdef uint64_t block = a.block, count = a.count[0], divisor0 = a.divisor[0], divisor1 = a.divisor[1]
    cdef const uint64_t* low0 = a.low + a.axis[0]
    cdef const uint64_t* low1 = a.low + a.axis[1]
    cdef uint64_t* out0 = out + a.axis[0]
    cdef uint64_t* out1 = out + a.axis[1]
    cdef Reciprocal by = a.by[0], by_block = a.by_block
    cdef int itemsize_log2 = a.itemsize_log2, bits = a.bits
    cdef int64_t i
    for i in range(rows):
        v = <uint64_t> offsets[i]
        bad |= v | (last - v) | (0 - (v & within))
        value = split_block(v >> itemsize_log2, block, bits, by_block, &low)
        quotient = divide(value, by)
        out0[2 * i] = low0[2 * low] + (value - quotient * count) * divisor0
        out1[2 * i] = low1[2 * low] + quotient * divisor1
    return bad


cdef int64_t first_bad_offset(const int64_t* offsets, const Inverse* a, int64_t row, int64_t end) noexcept nogil:
    """The first of some rows that is no element's offset; -1 if there is none (any more)."""
    for row in range(row, end):
        if <uint64_t> offsets[row] > a.last or <uint64_t> offsets[row] & a.within:
            return row
    return -1


def fill_coordinates(const int64_t[:, ::1] table not None, const int64_t[::1] widths not None, int64_t itemsize,
                     const int64_t[::1] offsets not None, int64_t size, int64_t[:, ::1] out not None):
    """Coordinates (n, rank) of byte offsets. Returns -1, or the first offset that is no element's.

    `itemsize` is a power of two, and `size` what the widths need, in bytes.
    """
    cdef Digit digits[MAX_DIGITS]
    cdef Inverse inverse
    cdef int n, m, k, rank = <int> out.shape[1]
    cdef int64_t row = 0, end, rows = offsets.shape[0], bad = -1
    cdef uint64_t wrong, longest = <uint64_t> min(max(rows, ALWAYS_TABLE), LONGEST_BLOCK)
    cdef uint64_t rest[BLOCK]
    cdef uint64_t* low
    cdef uint64_t* to
    cdef bint in_two
    if rows == 0:
        return -1
    if size == 0:
        return 0
    with nogil:
        n = load_digits(first(table), <int> table.shape[0], &widths[0] if rank else NULL, digits)
        inverse.last = <uint64_t> size - 1
        inverse.within = <uint64_t> itemsize - 1
        inverse.itemsize_log2 = log2_up(itemsize)
        inverse.rank = rank
        m = load_inverse(&inverse, digits, n, longest, rank == 2)
        if rank == 2 and not splits_in_two(&inverse):
            m = load_inverse(&inverse, digits, n, longest, False)
        low = <uint64_t*> malloc(inverse.block * <uint64_t> max(rank, 1) * sizeof(uint64_t))
        if low == NULL:
            with gil:
                raise MemoryError()
        fill_block(&inverse, digits + n - m, m, low)
        in_two = splits_in_two(&inverse)
        while row < rows and bad < 0:
            end = min(row + BLOCK, rows)
            to = <uint64_t*> &out[row, 0] if rank else NULL
            if in_two:
                wrong = split_in_two(&inverse, &offsets[row], end - row, to)
            else:
                wrong = look_up(&inverse, &offsets[row], end - row, rest, to)
                for k in range(inverse.digits):
                    add_digit(&inverse, k, end - row, rest, to)
            if <int64_t> wrong < 0:
                bad = first_bad_offset(&offsets[0], &inverse, row, end)
            row = end
        free(low)
    return bad


# --- boxes -----------------------------------------------------------------------------------------------------------

cdef enum:
    MOST_SPANS = 0x7fffffff     # counting stops here: no list is that long

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
    # Only the values whose blocks meet the box along this axis; slower digits may be long.
    low = box.low[axis] - (far[axis] - d.divisor * (d.count - 1))
    low = (low + d.divisor - 1) // d.divisor if low > 0 else 0
    high = min(d.count, (box.high[axis] - 1 - at) // d.divisor + 1)
    for v in range(low, high):
        if s.count >= MOST_SPANS:
            break
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
