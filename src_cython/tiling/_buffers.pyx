"""Bytes between arrays and shards' storage, and along a plan's runs.

Every order's offset is a sum over digits, and so is an array's: a shard moves as nested loops with constant steps on
both sides. What is contiguous on both sides moves as one unit; where the fastest loops of the two sides differ, blocks
of both keep the cache lines of both in the cache, and single elements are transposed in vector registers.
"""

from cpython.buffer cimport PyBUF_STRIDES, PyBUF_WRITABLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from ._storage cimport load_digits

cdef extern from *:
    """
    /* Vectors of 16 bytes, which every x86-64 and AArch64 processor has; zipping is all that transposes need. */
    #include <string.h>
    #if defined(__SSE2__) || defined(_M_X64)
    #include <emmintrin.h>
    typedef __m128i Vector;
    #define zip_low_1 _mm_unpacklo_epi8
    #define zip_high_1 _mm_unpackhi_epi8
    #define zip_low_2 _mm_unpacklo_epi16
    #define zip_high_2 _mm_unpackhi_epi16
    #define zip_low_4 _mm_unpacklo_epi32
    #define zip_high_4 _mm_unpackhi_epi32
    #define zip_low_8 _mm_unpacklo_epi64
    #define zip_high_8 _mm_unpackhi_epi64
    #elif defined(__ARM_NEON) && defined(__aarch64__)
    #include <arm_neon.h>
    typedef uint8x16_t Vector;
    #define TILING_ZIP(name, zip, to, from) \\
        static inline Vector name(Vector a, Vector b) { return from(zip(to(a), to(b))); }
    TILING_ZIP(zip_low_1, vzip1q_u8, , )
    TILING_ZIP(zip_high_1, vzip2q_u8, , )
    TILING_ZIP(zip_low_2, vzip1q_u16, vreinterpretq_u16_u8, vreinterpretq_u8_u16)
    TILING_ZIP(zip_high_2, vzip2q_u16, vreinterpretq_u16_u8, vreinterpretq_u8_u16)
    TILING_ZIP(zip_low_4, vzip1q_u32, vreinterpretq_u32_u8, vreinterpretq_u8_u32)
    TILING_ZIP(zip_high_4, vzip2q_u32, vreinterpretq_u32_u8, vreinterpretq_u8_u32)
    TILING_ZIP(zip_low_8, vzip1q_u64, vreinterpretq_u64_u8, vreinterpretq_u8_u64)
    TILING_ZIP(zip_high_8, vzip2q_u64, vreinterpretq_u64_u8, vreinterpretq_u8_u64)
    #else
    typedef struct { unsigned char byte[16]; } Vector;
    #define TILING_ZIP(name, size, first) \\
        static Vector name(Vector a, Vector b) { \\
            Vector c; \\
            int i; \\
            for (i = 0; i < 8 / size; i++) { \\
                memcpy(c.byte + 2 * i * size, a.byte + first + i * size, size); \\
                memcpy(c.byte + (2 * i + 1) * size, b.byte + first + i * size, size); \\
            } \\
            return c; \\
        }
    TILING_ZIP(zip_low_1, 1, 0)
    TILING_ZIP(zip_high_1, 1, 8)
    TILING_ZIP(zip_low_2, 2, 0)
    TILING_ZIP(zip_high_2, 2, 8)
    TILING_ZIP(zip_low_4, 4, 0)
    TILING_ZIP(zip_high_4, 4, 8)
    TILING_ZIP(zip_low_8, 8, 0)
    TILING_ZIP(zip_high_8, 8, 8)
    #endif
    /* Stores around the cache (of aligned vectors), and asking for a line ahead of time, where there are such. */
    #if defined(__SSE2__) || defined(_M_X64)
    static inline void stream(char* to, const char* from) {
        _mm_stream_si128((__m128i*) to, _mm_loadu_si128((const __m128i*) from));
    }
    static inline void prefetch(const char* at) { _mm_prefetch(at, _MM_HINT_T0); }
    static inline void end_streams(void) { _mm_sfence(); }
    #define TILING_STREAMS 1
    #else
    static inline void stream(char* to, const char* from) { memcpy(to, from, 16); }
    static inline void prefetch(const char* at) { (void) at; }
    static inline void end_streams(void) { }
    #define TILING_STREAMS 0
    #endif
    typedef struct { unsigned char byte[16]; } Unit16;
    typedef struct { unsigned char byte[32]; } Unit32;
    typedef struct { unsigned char byte[64]; } Unit64;
    /* The same sizes again, for units that are shuffled as they are copied. */
    typedef struct { unsigned char byte[16]; } Zip16;
    typedef struct { unsigned char byte[32]; } Zip32;
    typedef struct { unsigned char byte[64]; } Zip64;
    typedef struct { unsigned char byte[16]; } Unzip16;
    typedef struct { unsigned char byte[32]; } Unzip32;
    typedef struct { unsigned char byte[64]; } Unzip64;
    """
    ctypedef struct Vector:
        pass
    Vector zip_low_1(Vector a, Vector b) noexcept nogil
    Vector zip_high_1(Vector a, Vector b) noexcept nogil
    Vector zip_low_2(Vector a, Vector b) noexcept nogil
    Vector zip_high_2(Vector a, Vector b) noexcept nogil
    Vector zip_low_4(Vector a, Vector b) noexcept nogil
    Vector zip_high_4(Vector a, Vector b) noexcept nogil
    Vector zip_low_8(Vector a, Vector b) noexcept nogil
    Vector zip_high_8(Vector a, Vector b) noexcept nogil
    void stream(char* to, const char* from_) noexcept nogil
    void prefetch(const char* at) noexcept nogil
    void end_streams() noexcept nogil
    bint TILING_STREAMS
    ctypedef struct Unit16:
        pass
    ctypedef struct Unit32:
        pass
    ctypedef struct Unit64:
        pass
    ctypedef struct Zip16:
        pass
    ctypedef struct Zip32:
        pass
    ctypedef struct Zip64:
        pass
    ctypedef struct Unzip16:
        pass
    ctypedef struct Unzip32:
        pass
    ctypedef struct Unzip64:
        pass

ctypedef fused Item:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused Unit:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    Unit16
    Unit32
    Unit64
    Zip16
    Zip32
    Zip64
    Unzip16
    Unzip32
    Unzip64

cdef enum:
    # Bytes of a block along the target where each side has its own fastest loop: few lines are then open at a time on
    # either side, and those that are read or written in part are completed while they are near.
    SPAN = 512
    # How far ahead of what is read, in bytes, lines are asked for where nothing is expected to be in the cache; where
    # what is read is narrower than twice this, the lines below it are asked for.
    AHEAD = 512
    # Bytes written in one call from which on stores go around the cache: they would push out all that is in it, and
    # every line would be read before it is written. (What libraries' memcpy does from about here on, too.)
    STREAMED = 16 << 20
    # How many runs ahead lines are then asked for.
    AHEAD_RUNS = 8


# --- two loops -------------------------------------------------------------------------------------------------------


cdef inline void zip_parts(Vector* a, int bytes_) noexcept nogil:
    """Eight equal parts of 16, 32 or 64 bytes: the two halves' parts in turn. Three times is none."""
    cdef Vector b[4]
    if bytes_ == 16:
        a[0] = zip_low_2(a[0], zip_high_8(a[0], a[0]))
    elif bytes_ == 32:
        b[0] = zip_low_4(a[0], a[1])
        a[1] = zip_high_4(a[0], a[1])
        a[0] = b[0]
    else:
        b[0] = zip_low_8(a[0], a[2])
        b[1] = zip_high_8(a[0], a[2])
        b[2] = zip_low_8(a[1], a[3])
        b[3] = zip_high_8(a[1], a[3])
        a[0] = b[0]
        a[1] = b[1]
        a[2] = b[2]
        a[3] = b[3]


cdef inline void put(Unit* as_unit, char* target, const char* source) noexcept nogil:
    """One unit (memcpy of a constant size is a move, and may be unaligned)."""
    cdef Vector a[4]
    if (Unit is Zip16 or Unit is Zip32 or Unit is Zip64 or Unit is Unzip16 or Unit is Unzip32 or Unit is Unzip64):
        memcpy(a, source, sizeof(Unit))
        zip_parts(a, sizeof(Unit))
        if Unit is Unzip16 or Unit is Unzip32 or Unit is Unzip64:
            zip_parts(a, sizeof(Unit))
        memcpy(target, a, sizeof(Unit))
    else:
        memcpy(target, source, sizeof(Unit))


cdef inline void copy_plane(Unit* as_unit, char* source, char* target, Loop outer, Loop inner) noexcept nogil:
    """Units at constant steps."""
    cdef int64_t i, _
    cdef char* s
    cdef char* t
    for i in range(outer.count):
        s = source + i * outer.source
        t = target + i * outer.target
        for _ in range(inner.count):
            put(as_unit, t, s)
            s += inner.source
            t += inner.target


cdef inline void stream_ends(Unit* as_unit, char* source, char* target, char* row, int64_t size) noexcept nogil:
    """A unit near an end of a row of `size` bytes: around the cache where the line is the row's alone."""
    cdef int k
    cdef int64_t line
    for k in range(<int> (sizeof(Unit) // 16)):
        line = (<int64_t> (target + 16 * k) & ~<int64_t> 63) - <int64_t> row
        if 0 <= line and line + 64 <= size:
            stream(target + 16 * k, source + 16 * k)
        else:
            memcpy(target + 16 * k, source + 16 * k, 16)


cdef inline void stream_plane(Unit* as_unit, char* source, char* target, Loop outer, Loop inner,
                              int64_t ahead) noexcept nogil:
    """The same around the cache; units are vectors, aligned in the target.

    Lines in which short rows begin or end are stored as usual: what is written of a line around the cache must be all
    of it, or memory is read to complete it.
    """
    cdef int64_t i, j, low = 0, high, size = inner.count * <int64_t> sizeof(Unit)
    cdef int k
    cdef char* s
    cdef char* t
    for i in range(outer.count):
        s = source + i * outer.source
        t = target + i * outer.target
        low = 0
        high = inner.count
        if size < SPAN and inner.target == sizeof(Unit) and (<int64_t> t | size) & 63:
            low = min(high, 64 // <int64_t> sizeof(Unit))
            high = max(low, high - low)
            for j in range(low):
                stream_ends(as_unit, s + j * inner.source, t + j * inner.target, t, size)
        for j in range(low, high):
            prefetch(s + j * inner.source + ahead)
            for k in range(<int> (sizeof(Unit) // 16)):
                stream(t + j * inner.target + 16 * k, s + j * inner.source + 16 * k)
        for j in range(high, inner.count):
            stream_ends(as_unit, s + j * inner.source, t + j * inner.target, t, size)


cdef inline int64_t ahead_of(Loop along, int64_t below) noexcept nogil:
    """How far from what is read lies what is read soon after: further along the source's lines, or below."""
    return AHEAD if along.count * along.source >= 2 * AHEAD else below


cdef inline Vector zip_low(Item item, Vector a, Vector b) noexcept nogil:
    if Item is uint8_t:
        return zip_low_1(a, b)
    elif Item is uint16_t:
        return zip_low_2(a, b)
    elif Item is uint32_t:
        return zip_low_4(a, b)
    else:
        return zip_low_8(a, b)


cdef inline Vector zip_high(Item item, Vector a, Vector b) noexcept nogil:
    if Item is uint8_t:
        return zip_high_1(a, b)
    elif Item is uint16_t:
        return zip_high_2(a, b)
    elif Item is uint32_t:
        return zip_high_4(a, b)
    else:
        return zip_high_8(a, b)


cdef inline void transpose_vectors(Item item, const char* source, char* target, int64_t source_step,
                                   int64_t target_step, bint streamed, int64_t ahead) noexcept nogil:
    """A square of as many items as a vector has: rows `source_step` apart to columns `target_step` apart.

    Zipping row i with row i + n / 2 shuffles the 2k bits of an item's place (row, column) round by one; after k rounds
    row and column have changed places.
    """
    cdef Vector a[16]
    cdef Vector b[16]
    cdef int i, _
    cdef int n = 16 // sizeof(Item)
    for i in range(n):
        if streamed:
            prefetch(source + i * source_step + ahead)
        memcpy(&a[i], source + i * source_step, 16)
    for _ in range(4 if n == 16 else 3 if n == 8 else 2 if n == 4 else 1):
        for i in range(n // 2):
            b[2 * i] = zip_low(item, a[i], a[i + n // 2])
            b[2 * i + 1] = zip_high(item, a[i], a[i + n // 2])
        for i in range(n):
            a[i] = b[i]
    for i in range(n):
        if streamed:
            stream(target + i * target_step, <char*> &a[i])
        else:
            memcpy(target + i * target_step, &a[i], 16)


cdef inline void transpose_plane(Item item, char* source, char* target, Loop rows, Loop columns,
                                 bint streamed) noexcept nogil:
    """`columns` is contiguous in the source and `rows` in the target; squares in registers.

    Blocks of 64 items keep the lines of both sides in the cache.
    """
    cdef int64_t n = 16 // sizeof(Item), r, c, top, left, bottom, right
    cdef int64_t ahead = ahead_of(columns, rows.count * rows.source)
    if rows.count < n or columns.count < n:
        copy_plane(&item, source, target, columns, rows)
        return
    for left in range(0, columns.count, 64):
        right = min(left + 64, columns.count)
        for top in range(0, rows.count, 64):
            bottom = min(top + 64, rows.count)
            c = left
            while c < right:
                c = min(c, right - n)       # what remains is less than a square: the last one overlaps the one before
                r = top
                while r < bottom:
                    if r + n > bottom:
                        if streamed:        # which must stay aligned
                            copy_plane(&item, source + r * rows.source + c * columns.source,
                                       target + r * rows.target + c * columns.target,
                                       Loop(n, columns.source, columns.target),
                                       Loop(bottom - r, rows.source, rows.target))
                            break
                        r = bottom - n
                    transpose_vectors(item, source + r * rows.source + c * columns.source,
                                      target + r * rows.target + c * columns.target, rows.source, columns.target,
                                      streamed, ahead)
                    r += n
                c += n


cdef inline void strip_plane(Unit* as_unit, char* source, char* target, Loop outer, Loop inner) noexcept nogil:
    """The same with the outer loop in strips of one line of the source, so that it is read whole."""
    cdef int64_t i = 0, _
    cdef int k
    cdef int wide = <int> (64 // sizeof(Unit))
    cdef char* s
    cdef char* t
    while i + wide <= outer.count:
        s = source + i * outer.source
        t = target + i * outer.target
        for _ in range(inner.count):
            prefetch(s + 64)
            for k in range(wide):
                put(as_unit, t + k * outer.target, s + k * outer.source)
            s += inner.source
            t += inner.target
        i += wide
    copy_plane(as_unit, source + i * outer.source, target + i * outer.target,
               Loop(outer.count - i, outer.source, outer.target), inner)


cdef inline void block_plane(Unit* as_unit, char* source, char* target, Loop outer, Loop inner,
                             bint streamed) noexcept nogil:
    """Two loops of which `inner` is the target's fastest and `outer` the source's, in blocks of the inner one."""
    cdef int64_t size = (SPAN if streamed else SPAN // 2) // sizeof(Unit), j = 0
    cdef Loop block
    while j < inner.count:
        block = Loop(min(size, inner.count - j), inner.source, inner.target)
        if streamed:
            stream_plane(as_unit, source + j * inner.source, target + j * inner.target, outer, block,
                         ahead_of(outer, size * inner.source))
        elif sizeof(Unit) >= 16 and outer.source == sizeof(Unit):
            strip_plane(as_unit, source + j * inner.source, target + j * inner.target, outer, block)
        else:
            copy_plane(as_unit, source + j * inner.source, target + j * inner.target, outer, block)
        j += size


# --- any number of loops ---------------------------------------------------------------------------------------------


cdef inline int64_t size_of(int64_t step) noexcept nogil:
    return -step if step < 0 else step


cdef int arrange(Loop* loops, int n) noexcept nogil:
    """Drop loops of one step, put the target's slowest first, and join what continues on both sides."""
    cdef int i, k, m = 0
    cdef Loop loop
    for k in range(n):
        loop = loops[k]
        if loop.count == 1:
            continue
        i = m
        while i > 0 and size_of(loops[i - 1].target) < size_of(loop.target):
            loops[i] = loops[i - 1]
            i -= 1
        loops[i] = loop
        m += 1
    n = m
    m = 0
    for k in range(n):
        loop = loops[k]
        if m and loops[m - 1].source == loop.source * loop.count and loops[m - 1].target == loop.target * loop.count:
            loops[m - 1] = Loop(loops[m - 1].count * loop.count, loop.source, loop.target)
        else:
            loops[m] = loop
            m += 1
    return m


cdef void sort_by_source(Loop* loops, int n) noexcept nogil:
    cdef int i, k
    cdef Loop loop
    for k in range(1, n):
        loop = loops[k]
        i = k
        while i > 0 and size_of(loops[i - 1].source) < size_of(loop.source):
            loops[i] = loops[i - 1]
            i -= 1
        loops[i] = loop


cdef enum Shape:
    RUN         # the loops' units go one after the other
    BLOCKS      # the two sides' fastest loops differ
    SQUARES     # and single items are contiguous along them


cdef inline void plane(Unit* as_unit, Shape shape, bint streamed, char* source, char* target, Loop outer,
                       Loop inner) noexcept nogil:
    if shape == SQUARES:
        if Unit is uint8_t or Unit is uint16_t or Unit is uint32_t or Unit is uint64_t:
            if streamed:
                transpose_plane(as_unit[0], source, target, inner, outer, True)
            else:
                transpose_plane(as_unit[0], source, target, inner, outer, False)
    elif Unit is Unit16 or Unit is Unit32 or Unit is Unit64:
        if shape == BLOCKS:
            if streamed:
                block_plane(as_unit, source, target, outer, inner, True)
            else:
                block_plane(as_unit, source, target, outer, inner, False)
        elif streamed:
            stream_plane(as_unit, source, target, outer, inner, ahead_of(inner, outer.source))
        else:
            copy_plane(as_unit, source, target, outer, inner)
    elif shape == BLOCKS:
        block_plane(as_unit, source, target, outer, inner, False)
    else:
        copy_plane(as_unit, source, target, outer, inner)


cdef void move_units(Unit* as_unit, Shape shape, bint streamed, const Loop* loops, int n, char* source,
                     char* target) noexcept nogil:
    """All loops; the last two are one plane."""
    cdef int64_t at[MAX_DIGITS + MAX_RANK]
    cdef int k
    for k in range(n - 2):
        at[k] = 0
    while True:
        plane(as_unit, shape, streamed, source, target, loops[n - 2], loops[n - 1])
        k = n - 3
        while k >= 0:
            source += loops[k].source
            target += loops[k].target
            at[k] += 1
            if at[k] < loops[k].count:
                break
            source -= loops[k].source * loops[k].count
            target -= loops[k].target * loops[k].count
            at[k] = 0
            k -= 1
        if k < 0:
            return


cdef void move_runs(const Loop* loops, int n, char* source, char* target, int64_t unit) noexcept nogil:
    """Units of any size."""
    cdef int64_t i
    if n == 0:
        memcpy(target, source, unit)
        return
    for i in range(loops[0].count):
        move_runs(loops + 1, n - 1, source + i * loops[0].source, target + i * loops[0].target, unit)


cdef inline bint is_loop(Loop loop, int64_t count, int64_t source, int64_t target) noexcept nogil:
    return loop.count == count and loop.source == source and loop.target == target


cdef bint fills_lines(const Loop* loops, int n, Shape shape, int64_t unit) noexcept nogil:
    """Whether all vectors are aligned, and whole lines of the target are written one after the other."""
    cdef int k
    for k in range(n - 1 if shape == SQUARES else n):
        if loops[k].target % 16:
            return False
    if shape == SQUARES:
        return loops[n - 2].target <= 64
    return unit == 64 or (unit >= 16 and loops[n - 1].target == unit)


cdef void move(Loop* loops, int n, char* source, char* target, int64_t unit, bint streamed) noexcept nogil:
    """Everything that the loops reach. Rearranges `loops`, which needs room for two more."""
    cdef int k, m
    cdef int64_t item = unit, value = 0
    cdef bint zip_ = False, unzip = False
    cdef Shape shape = RUN
    cdef Loop loop
    cdef Unit16 unit16
    cdef Unit32 unit32
    cdef Unit64 unit64
    cdef Zip16 zip16
    cdef Zip32 zip32
    cdef Zip64 zip64
    cdef Unzip16 unzip16
    cdef Unzip32 unzip32
    cdef Unzip64 unzip64
    for k in range(n):
        if loops[k].count <= 0:
            return
    n = arrange(loops, n)
    if n and loops[n - 1].source == unit and loops[n - 1].target == unit:
        n -= 1
        unit *= loops[n].count
    if n >= 2 and unit >= 2 and unit <= 8:     # Output's sixteen elements
        zip_ = is_loop(loops[n - 2], 4, unit, 2 * unit) and is_loop(loops[n - 1], 2, 4 * unit, unit)
        unzip = is_loop(loops[n - 2], 2, unit, 4 * unit) and is_loop(loops[n - 1], 4, 2 * unit, unit)
        if zip_ or unzip:
            n -= 2
            unit *= 8
            streamed = False
    if n and unit % 64 == 0 and unit <= 1024 and not zip_ and not unzip:   # wide, but not worth a call
        loops[n] = Loop(unit // 64, 64, 64)
        unit = 64
        n += 1
    if unit > 64 or unit & (unit - 1):
        move_runs(loops, n, source, target, unit)
        return
    if n >= 2 and (unit > item or loops[n - 1].target == unit):
        # Bring the source's fastest loop next to the target's.
        m = n - 1
        for k in range(n - 1):
            if size_of(loops[k].source) < size_of(loops[m].source) and loops[k].source:
                m = k
        if m != n - 1:
            loop = loops[m]
            for k in range(m, n - 2):
                loops[k] = loops[k + 1]
            loops[n - 2] = loop
            sort_by_source(loops, n - 2)
            shape = SQUARES if unit <= 8 and loop.source == unit and loops[n - 1].target == unit else BLOCKS
    while n < 2:
        for k in range(n, 0, -1):
            loops[k] = loops[k - 1]
        loops[0] = Loop(1, 0, 0)
        n += 1
    # Vectors are stored around the cache where all of them are aligned.
    if streamed:
        streamed = TILING_STREAMS and <uint64_t> target % 16 == 0 and fills_lines(loops, n, shape, unit)
    if zip_:
        if unit == 16:
            move_units(&zip16, shape, streamed, loops, n, source, target)
        elif unit == 32:
            move_units(&zip32, shape, streamed, loops, n, source, target)
        else:
            move_units(&zip64, shape, streamed, loops, n, source, target)
    elif unzip:
        if unit == 16:
            move_units(&unzip16, shape, streamed, loops, n, source, target)
        elif unit == 32:
            move_units(&unzip32, shape, streamed, loops, n, source, target)
        else:
            move_units(&unzip64, shape, streamed, loops, n, source, target)
    elif unit == 1:
        move_units(<uint8_t*> &value, shape, streamed, loops, n, source, target)
    elif unit == 2:
        move_units(<uint16_t*> &value, shape, streamed, loops, n, source, target)
    elif unit == 4:
        move_units(<uint32_t*> &value, shape, streamed, loops, n, source, target)
    elif unit == 8:
        move_units(<uint64_t*> &value, shape, streamed, loops, n, source, target)
    elif unit == 16:
        move_units(&unit16, shape, streamed, loops, n, source, target)
    elif unit == 32:
        move_units(&unit32, shape, streamed, loops, n, source, target)
    else:
        move_units(&unit64, shape, streamed, loops, n, source, target)


cdef void zero(Loop* loops, int n, char* target, int64_t unit) noexcept nogil:
    """Everything that the loops reach in the target. Rearranges `loops`."""
    cdef int k
    for k in range(n):
        if loops[k].count <= 0:
            return
    n = arrange(loops, n)
    if n and loops[n - 1].target == unit:
        n -= 1
        unit *= loops[n].count
    zero_runs(loops, n, target, unit)


cdef void zero_runs(const Loop* loops, int n, char* target, int64_t unit) noexcept nogil:
    cdef int64_t i
    if n == 0:
        memset(target, 0, unit)
        return
    for i in range(loops[0].count):
        if n == 1:
            prefetch(target + (i + 1) * loops[0].target)
        zero_runs(loops + 1, n - 1, target + i * loops[0].target, unit)


# --- one shard -------------------------------------------------------------------------------------------------------

# A walk over the products of digit ranges; `part` says what of its axis.
cdef enum Part:
    LOGICAL
    PADDING
    WHOLE


cdef struct Walk:
    const Shard* s
    bint zeroing
    Loop loops[MAX_DIGITS]


cdef inline void add_loop(Walk* w, int* n, const Digit* d, int64_t count) noexcept nogil:
    cdef int64_t array = d.divisor * w.s.step[d.axis], storage = d.stride * w.s.itemsize
    if w.zeroing:
        w.loops[n[0]] = Loop(count, storage, storage)
    elif w.s.packing:
        w.loops[n[0]] = Loop(count, array, storage)
    else:
        w.loops[n[0]] = Loop(count, storage, array)
    n[0] += 1


cdef inline int add_finer(Walk* w, int n, int axis, int digit) noexcept nogil:
    """Whole loops for an axis' digits finer than `digit`."""
    cdef int k
    for k in range(digit + 1, w.s.digits):
        if w.s.digit[k].axis == axis:
            add_loop(w, &n, &w.s.digit[k], w.s.digit[k].count)
    return n


cdef void walk(Walk* w, int axis, int n, int padded, char* array, char* storage) noexcept nogil:
    """Axes from `axis` on, with `n` loops set for those before.

    `padded` is the axis of which the padding is meant: axes before it are taken in their logical widths, axes after it
    whole, so that these pieces don't overlap. It is the rank where all are logical.
    """
    cdef const Shard* s = w.s
    cdef int k, m
    cdef int64_t rest, value, count
    cdef const Digit* d
    cdef Loop loops[MAX_DIGITS + 2]     # the piece's own, as it rearranges them
    if axis == s.rank:
        memcpy(loops, w.loops, n * sizeof(Loop))
        if w.zeroing:
            zero(loops, n, storage, s.itemsize)
        elif s.packing:
            move(loops, n, array, storage, s.itemsize, s.streamed)
        else:
            move(loops, n, storage, array, s.itemsize, s.streamed)
        return
    if axis > padded:
        walk(w, axis + 1, add_finer(w, n, axis, -1), padded, array, storage)
        return
    rest = s.logical[axis]
    for k in range(s.digits):
        d = &s.digit[k]
        if d.axis != axis:
            continue
        value = rest // d.divisor
        rest -= value * d.divisor
        if axis != padded:
            if value:
                m = n
                add_loop(w, &m, d, value)
                walk(w, axis + 1, add_finer(w, m, axis, k), padded, array, storage)
        else:
            count = d.count - value - (rest > 0)
            if count > 0:
                m = n
                add_loop(w, &m, d, count)
                walk(w, axis + 1, add_finer(w, m, axis, k), padded,
                     array, storage + (value + (rest > 0)) * d.stride * s.itemsize)
        if rest == 0:
            return
        if not w.zeroing:       # which has no array
            array += value * d.divisor * s.step[axis]
        storage += value * d.stride * s.itemsize
    # An axis of one coordinate has no digits: it is all logical or all padding.
    if (axis != padded) == (rest > 0):
        walk(w, axis + 1, n, padded, array, storage)


cdef void load_order(Shard* s, const int64_t[:, ::1] table) noexcept nogil:
    """The digits for the shard's widths, each axis' coarsest first (which is not everywhere the slowest)."""
    cdef int i, k, n = <int> table.shape[0]
    cdef Digit digit
    s.digits = load_digits(&table[0, 0] if n else NULL, n, s.width, s.digit)
    for k in range(1, s.digits):
        digit = s.digit[k]
        i = k
        while i > 0 and s.digit[i - 1].divisor < digit.divisor:
            s.digit[i] = s.digit[i - 1]
            i -= 1
        s.digit[i] = digit


cdef void move_shard(const Shard* s, char* array, char* storage) noexcept nogil:
    """The logical elements, from the array to the storage or back."""
    cdef Walk w
    w.s = s
    w.zeroing = False
    walk(&w, 0, 0, s.rank, array, storage)


cdef void zero_padding(const Shard* s, char* storage) noexcept nogil:
    """Everything else of the storage."""
    cdef Walk w
    cdef int axis
    w.s = s
    w.zeroing = True
    for axis in range(s.rank):
        if s.logical[axis] < s.width[axis]:
            walk(&w, 0, 0, axis, NULL, storage)


# --- the face --------------------------------------------------------------------------------------------------------


cdef inline void set_steps(Shard* s) noexcept nogil:
    """The steps of a row-major array of the shard's logical widths."""
    cdef int a
    cdef int64_t step = s.itemsize
    for a in range(s.rank - 1, -1, -1):
        s.step[a] = step
        step *= s.logical[a]


cdef class Shards:
    """A tensor's shards, for moving their elements between an array and one block of memory that holds them all.

    Columns of n rows: the digit table of the order, start, logical and physical end (n, rank) in elements, and the byte
    `at` which each shard begins in the block.
    """

    def __init__(self, int64_t itemsize, const int64_t[:, ::1] table not None, const int64_t[:, ::1] start not None,
                 const int64_t[:, ::1] logical_end not None, const int64_t[:, ::1] physical_end not None,
                 const int64_t[::1] at not None):
        self.itemsize = itemsize
        self.table = table
        self.start = start
        self.logical_end = logical_end
        self.physical_end = physical_end
        self.at = at

    def pack(self, array, uint8_t[::1] data not None):
        """Fill the block from an array of unsigned integers, of any strides; padding is zero."""
        self.convert(True, array, data)

    def unpack(self, array, const uint8_t[::1] data not None):
        """Fill an array, of any strides, from the block."""
        self.convert(False, array, data)

    def stage(self, bint packing, uint8_t[::1] staged not None, const int64_t[::1] staged_at not None,
              const uint8_t[::1] data not None):
        """Move shards between row-major arrays of their logical widths, which begin at `staged_at`, and the block.

        `data` is written where `packing`, else `staged`.
        """
        cdef char* first = <char*> &staged[0] if staged.shape[0] else NULL
        if data.shape[0]:
            with nogil:
                self.move_all(packing, False, first, NULL, &staged_at[0], <char*> &data[0])

    cdef int convert(self, bint packing, array, const uint8_t[::1] data) except -1:
        cdef Py_buffer view
        cdef int64_t steps[MAX_RANK]
        cdef int a
        if data.shape[0] == 0:
            return 0
        PyObject_GetBuffer(array, &view, PyBUF_STRIDES if packing else PyBUF_STRIDES | PyBUF_WRITABLE)
        for a in range(<int> self.start.shape[1]):
            steps[a] = view.strides[a]
        with nogil:
            self.move_all(packing, data.shape[0] >= STREAMED, <char*> view.buf, steps, NULL, <char*> &data[0])
        PyBuffer_Release(&view)
        return 0

    cdef void move_all(self, bint packing, bint streamed, char* array, const int64_t* steps, const int64_t* staged_at,
                       char* data) noexcept nogil:
        """All shards; `steps` of one array that all are parts of, or `staged_at` where each has its own."""
        cdef Shard s
        cdef int64_t i, low, width, offset, size
        cdef int a
        cdef bint same
        s.rank = <int> self.start.shape[1]
        s.itemsize = self.itemsize
        s.packing = packing
        s.streamed = streamed
        s.digits = 0
        for a in range(s.rank):
            s.width[a] = -1
            if steps != NULL:
                s.step[a] = steps[a]
        for i in range(self.at.shape[0]):
            offset = 0
            size = 1
            same = i > 0
            for a in range(s.rank):
                low = self.start[i, a]
                if steps != NULL:
                    offset += low * steps[a]
                width = self.physical_end[i, a] - low
                same = same and width == s.width[a]
                s.width[a] = width
                s.logical[a] = self.logical_end[i, a] - low
                size *= width
            if size == 0:
                continue
            if not same:
                load_order(&s, self.table)
            if steps == NULL:
                set_steps(&s)
                offset = staged_at[i]
            move_shard(&s, array + offset, data + self.at[i])
            if packing:
                zero_padding(&s, data + self.at[i])
        if streamed:
            end_streams()


# --- runs of a plan --------------------------------------------------------------------------------------------------


cdef inline void copy_run(char* target, const char* source, int64_t size) noexcept nogil:
    """A run; short ones without a call."""
    cdef int64_t i
    if size == 32:
        memcpy(target, source, 32)
    elif size > 256:
        memcpy(target, source, size)
    elif size >= 16:
        for i in range(0, size - 16, 16):
            memcpy(target + i, source + i, 16)
        memcpy(target + size - 16, source + size - 16, 16)
    elif size >= 4:
        for i in range(0, size - 4, 4):
            memcpy(target + i, source + i, 4)
        memcpy(target + size - 4, source + size - 4, 4)
    else:
        for i in range(size):
            target[i] = source[i]


cdef inline void stream_run(char* target, const char* source, int64_t size, const char* next_) noexcept nogil:
    """A run, whole lines of the target around the cache; lines from `next_` on are asked for."""
    cdef int64_t i = -<int64_t> target & 63
    cdef int k
    if i + 64 > size:
        copy_run(target, source, size)
        return
    copy_run(target, source, i)
    while i + 64 <= size:
        prefetch(next_ + i)
        for k in range(4):
            stream(target + i + 16 * k, source + i + 16 * k)
        i += 64
    copy_run(target + i, source + i, size - i)


# One side of a list of runs: a block of memory, where each tile's buffer begins in it, and the columns.
cdef struct Ends:
    char* data
    const int64_t* start
    int64_t tiles
    const int32_t* tile
    const int64_t* offset


cdef inline char* place_of(Ends e, int64_t i, int64_t size) noexcept nogil:
    """Where row i is; NULL if that is not in its tile's buffer (plans are right as made, and may have been changed)."""
    cdef int64_t tile = e.tile[i], offset = e.offset[i]
    if <uint64_t> tile >= <uint64_t> e.tiles or offset < 0 or size < 0:
        return NULL
    if size > e.start[tile + 1] - e.start[tile] - offset:
        return NULL
    return e.data + e.start[tile] + offset


cdef inline int64_t carry_all(Ends source, Ends target, const int64_t* sizes, const int64_t* first, int64_t rows,
                              int64_t ends, bint streamed) noexcept nogil:
    """Copy every run to all of its destinations; see `carry`.

    In large lists lines are read and written all over the memory; but where is known ahead.
    """
    cdef int64_t i, j, low, high, size
    cdef const char* from_
    cdef const char* next_ = NULL
    cdef char* to
    for i in range(rows):
        low = i if first == NULL else first[i]
        high = i + 1 if first == NULL else first[i + 1]
        size = sizes[i]
        from_ = place_of(source, i, size)
        if from_ == NULL or low < 0 or low > high or high > ends:
            return i
        if streamed:
            next_ = place_of(source, min(i + (2 if size >= 512 else AHEAD_RUNS), rows - 1), 0)
            if next_ == NULL:
                next_ = from_
            prefetch(next_)
        for j in range(low, high):
            to = place_of(target, j, size)
            if to == NULL:
                return i
            if streamed:
                if size < 64:
                    prefetch(place_of(target, min(j + AHEAD_RUNS, ends - 1), 0))
                stream_run(to, from_, size, next_)
            else:
                copy_run(to, from_, size)
    return -1


def carry(const uint8_t[::1] source not None, const int64_t[::1] source_start not None,
          uint8_t[::1] target not None, const int64_t[::1] target_start not None,
          const int32_t[::1] source_tile not None, const int64_t[::1] source_offset not None,
          const int64_t[::1] size not None, const int64_t[::1] destination_start,
          const int32_t[::1] destination_tile not None, const int64_t[::1] destination_offset not None):
    """Copy every run to all of its destinations; `destination_start` None means one each.

    Returns -1, or the first run that is outside its tiles' buffers.
    """
    cdef Ends a, b
    cdef int64_t bad
    cdef const int64_t* first = NULL
    if source_tile.shape[0] == 0 or destination_tile.shape[0] == 0:
        return -1
    if source.shape[0] == 0 or target.shape[0] == 0:
        return 0
    if (source_offset.shape[0] != source_tile.shape[0] or size.shape[0] != source_tile.shape[0]
            or destination_offset.shape[0] != destination_tile.shape[0]
            or (destination_start is not None and destination_start.shape[0] != source_tile.shape[0] + 1)
            or (destination_start is None and destination_tile.shape[0] != source_tile.shape[0])):
        return 0
    if destination_start is not None:
        first = &destination_start[0]
    a = Ends(<char*> &source[0], &source_start[0], source_start.shape[0] - 1, &source_tile[0], &source_offset[0])
    b = Ends(<char*> &target[0], &target_start[0], target_start.shape[0] - 1, &destination_tile[0],
             &destination_offset[0])
    with nogil:
        if target.shape[0] >= STREAMED:
            bad = carry_all(a, b, &size[0], first, source_tile.shape[0], destination_tile.shape[0], True)
            end_streams()
        else:
            bad = carry_all(a, b, &size[0], first, source_tile.shape[0], destination_tile.shape[0], False)
    return bad


def clear(uint8_t[::1] target not None, const int64_t[::1] start not None, const int32_t[::1] tile not None,
          const int64_t[::1] offset not None, const int64_t[::1] size not None):
    """Zero spans of tiles' buffers. Returns -1, or the first span that is outside."""
    cdef Ends e
    cdef int64_t i, bad = -1
    cdef char* at
    if tile.shape[0] == 0:
        return -1
    if target.shape[0] == 0:
        return 0
    e = Ends(<char*> &target[0], &start[0], start.shape[0] - 1, &tile[0], &offset[0])
    with nogil:
        for i in range(tile.shape[0]):
            at = place_of(e, i, size[i])
            if at == NULL:
                bad = i
                break
            memset(at, 0, size[i])
    return bad
