"""Threads: eight at once give the answers of one, share no arrays, and may all be the first to fill a cache."""

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product

import numpy as np
import pytest

import tiling
from tiling import (
    F16,
    F32,
    LINEAR,
    Amp,
    AxisTiling,
    AxisView,
    BlockMajor,
    CoordinateMapping,
    OwnerMap,
    TensorType,
    ownership,
    regions,
)

THREADS = 8
SECONDS = 60.0 if os.environ.get("TILING_LONG") == "1" else 2.0

CACHES = [
    *(regions._kept, regions.side_table, regions.moving_digits, regions.rest_divisors),
    *(ownership.resolve, ownership._cut_axis, ownership._whole, ownership.order_needs),
]

# Cut by rows, by columns with padding, in panels, in blocks, in strides that are not packed, replicated, Linear.
SHAPE = [96, 80]
PADDED = AxisTiling(1, 3, block_size=16, shard_padding_multiple=32, padding="Zero")
TYPES = [
    TensorType.tiled(SHAPE, F16, {0: 8}),
    TensorType.tiled(SHAPE, F16, [PADDED]),
    TensorType.tiled(SHAPE, F16, {0: 3}, order=Amp("Left"), replicas=2),
    TensorType.tiled(SHAPE, F16, {0: 3, 1: 5}, order=BlockMajor("Matrix", 16, 16)),
    TensorType.tiled(SHAPE, F16, [AxisTiling(0, 2, tile_stride=1), AxisTiling(1, 3, tile_stride=1)], replicas=2),
    TensorType.replicated(SHAPE, F16, 4, order=Amp("Output")),
    TensorType.tiled(SHAPE, F16, [AxisTiling(LINEAR, 7, block_size=16)]),
    TensorType.tiled(SHAPE, F16, {1: 7}),  # columns of 11 and 12: misaligned
]
HEADS = CoordinateMapping((), AxisView(1, 0, 5))


def columns(value):
    """Every array in a result, by name."""
    if isinstance(value, np.ndarray):
        return {"": value}
    names = getattr(value, "__slots__", None) or getattr(value, "__dict__", {})
    found = {}
    for name in names:
        part = getattr(value, name)
        if isinstance(part, np.ndarray):
            found[name] = part
    return found


def plan(a, b, **more):
    made = tiling.plan_copy(a, b, **more)
    return [made.transfers, made.local, made.zero_fill]


def count(a, b, **more):
    return [tiling.count_copy(a, b, **more)]


def shorten(a, b):
    strided = tiling.plan_copy(a, b).transfers.compact()
    return [strided, tiling.Transfers(*strided.expand())]


def shards(a, b):
    return [tiling.enumerate_shards(a), tiling.enumerate_shards(b, OwnerMap(1), b.tiling.tile_count + 2)]


def phase(a, b):
    made = tiling.ExchangePhase([tiling.plan_copy(a, b), tiling.count_copy(b, a)])
    return [made.sent_words, made.received_words]


def moved(a, b):
    return plan(a, b, destination_owners=OwnerMap(3), device_tiles=20)


def viewed(a, b):
    heads = TensorType.tiled([480, 16], F16, {0: 6})
    return plan(a, heads, mapping=HEADS) + count(a, heads, mapping=HEADS)


def storage(a, b):
    m = tiling.StorageMap(Amp("Left"), F16, SHAPE)
    points = np.argwhere(np.ones((12, 40), bool))
    return [m.offset(points), m.coordinate(m.offset(points)), m.spans([3, 5], [20, 60])]


ARRAY = np.arange(96 * 80, dtype=np.uint16).reshape(SHAPE)


def carried(a, b):
    source = tiling.pack(ARRAY, a)
    plan = tiling.plan_copy(a, b)
    held = tiling.pack(ARRAY, a, device_tiles=plan.device_tiles)
    out = tiling.execute(plan, held)
    return [source.data, out.data, tiling.unpack(out)]


def counts(a, b):
    with ThreadPoolExecutor(2) as pool:
        return [tiling.count_copies([(a, b), (b, a), (a, a)] * 100, executor=pool)]


JOBS = [(job, a, b) for job in (plan, count, shorten, shards, phase, moved, carried) for a, b in product(TYPES, TYPES)]
JOBS += [(viewed, a, a) for a in TYPES] + [(storage, None, None)] + [(counts, a, b) for a, b in pairwise(TYPES)]


def answer(job):
    """A job's arrays as bytes, and its other figures."""
    call, a, b = job
    out = []
    for part in call(a, b):
        out += [(name, array.dtype.str, array.shape, array.tobytes()) for name, array in columns(part).items()]
        out += [
            getattr(part, name, None)
            for name in ("transfers", "local_runs", "bytes", "misaligned")
            if not isinstance(getattr(part, name, None), np.ndarray)
        ]
    return out


def forget():
    for cache in CACHES:
        cache.cache_clear()


@pytest.fixture(autouse=True)
def often_interrupted():
    """Threads change places every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)
    forget()


def together(work):
    """Run `work(i)` on eight threads that start at once; the first error is raised."""
    barrier = threading.Barrier(THREADS)

    def run(i):
        barrier.wait(60)
        return work(i)

    with ThreadPoolExecutor(THREADS) as pool:
        return [future.result(timeout=SECONDS + 120) for future in [pool.submit(run, i) for i in range(THREADS)]]


def test_eight_threads_are_as_one():
    forget()
    want = [answer(job) for job in JOBS]
    until = time.monotonic() + SECONDS

    def work(i):
        rng, done = np.random.default_rng(i), 0
        while time.monotonic() < until or done < 20:
            j = int(rng.integers(len(JOBS)))
            if answer(JOBS[j]) != want[j]:
                return j
            done += 1
        return None

    wrong = [JOBS[j] for j in together(work) if j is not None]
    assert not wrong


def test_caches_are_filled_by_all_at_once():
    # All threads ask for the same copy, of which nothing is known yet; half of them count it and half list it.
    forget()
    pairs = [(a, b) for a, b in product(TYPES, TYPES) if a is not b]
    want = {pair: (answer((count, *pair)), answer((plan, *pair))) for pair in pairs}
    for a, b in pairs:
        forget()
        got = together(lambda i, a=a, b=b: (i % 2, answer(((count, plan)[i % 2], a, b))))
        assert all(result == want[a, b][kind] for kind, result in got)


def test_one_analysis_for_all():
    # A copy that is only checked: its analyses are made by whoever comes first, and are the same to all.
    for a, b in product(TYPES, TYPES):
        forget()
        copy = regions.retile(a, b)
        assert copy is regions.retile(a, b)
        totals = together(lambda i, copy=copy: (copy.full_analysis if i % 2 else copy.analysis).count())
        assert len(set(totals)) == 1


def test_executors_of_any_width():
    pairs = [(a, b) for a, b in product(TYPES, TYPES)] * 10
    want = columns(tiling.count_copies(pairs))
    for width in (1, 3, 8):
        forget()
        with ThreadPoolExecutor(width) as pool:
            got = columns(tiling.count_copies(pairs, executor=pool))
        assert all((got[name] == want[name]).all() for name in want)


def test_results_share_nothing():
    # What a caller does with a result reaches no other result, earlier or later, nor what is kept.
    for job in JOBS[:: 1 if SECONDS > 10 else 3]:
        call, a, b = job
        want = answer(job)
        first, second = call(a, b), call(a, b)
        for one, other in zip(first, second, strict=True):
            for name, array in columns(one).items():
                assert not np.shares_memory(array, columns(other)[name])
                if array.flags.writeable:
                    array[...] = 77
        assert answer(job) == want


def test_what_is_kept_is_not_writeable_by_accident():
    cut = ownership.resolve(TYPES[0]).cuts[0]
    with pytest.raises(ValueError, match="read-only"):
        cut.bounds[0, 0] = 5


def test_errors_are_each_threads_own():
    wrong = TensorType.tiled([6, 4], F32, {0: 3}, tile_count=4)

    def work(_):
        with pytest.raises(tiling.TilingError) as caught:
            tiling.count_copies([(wrong, wrong)])
        return str(caught.value)

    # `under` changes an error in place, so one that two threads share would be named twice.
    assert len(set(together(work))) == 1
