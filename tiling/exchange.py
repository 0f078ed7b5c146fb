"""Phases: the transfers of several copies that run together between two computations."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from . import _exchange
from .copying import CopyPlan, Transfers
from .counting import CopyCount, TileLoads
from .errors import CopyError, SizeError
from .layout import MAX_SIZE
from .ownership import exact_sum
from .tables import Int32, Int64


class ExchangePhase:
    """Several copies together: totals, loads per tile, the bound, and (from plans) the traffic.

    Parameters
    ----------
    parts : iterable of CopyPlan or CopyCount
        Each copy has a buffer of its own. `fragments`, `traffic` need plans.
    """

    def __init__(self, parts: Iterable[CopyPlan | CopyCount]) -> None:
        if not isinstance(parts, Iterable):
            raise CopyError("not a sequence of copies", where="parts", value=parts, accepted="CopyPlan, CopyCount")
        self.parts = tuple(parts)
        for i, part in enumerate(self.parts):
            if not isinstance(part, (CopyPlan, CopyCount)):
                raise CopyError("not a copy", where=f"parts[{i}]", value=part, accepted="CopyPlan, CopyCount")
        self.device_tiles: int = max((part.device_tiles for part in self.parts), default=0)

    def __repr__(self) -> str:
        totals = f"{self.transfers} transfers, bound {self.endpoint_lower_bound} words"
        return f"ExchangePhase({len(self.parts)} copies, {totals})"

    @cached_property
    def transfers(self) -> int:
        """Their number; a multicast counts once."""
        return sum(p.transfers if isinstance(p, CopyCount) else len(p.transfers) for p in self.parts)

    @cached_property
    def local_runs(self) -> int:
        """Their number, over all copies."""
        return sum(p.local_runs if isinstance(p, CopyCount) else len(p.local) for p in self.parts)

    @cached_property
    def bytes(self) -> int:
        """Sum of the transfers' sizes; a multicast counts once."""
        return sum(p.bytes if isinstance(p, CopyCount) else exact_sum(p.transfers.bytes) for p in self.parts)

    @cached_property
    def _loads(self) -> tuple[Int64, Int64]:
        sent, received = np.zeros(self.device_tiles, np.int64), np.zeros(self.device_tiles, np.int64)
        most = sum(
            int(p.endpoint_lower_bound) if isinstance(p, CopyCount) else exact_sum(p.transfers.bytes)
            for p in self.parts
        )
        if most > MAX_SIZE:
            raise SizeError("the phase's words are too many", where="parts", value=most, accepted="at most 2^63-1")
        for part in self.parts:
            if isinstance(part, CopyCount):
                sent[: part.device_tiles] += part.sent_words
                received[: part.device_tiles] += part.received_words
            else:
                x = part.transfers
                _exchange.add_words(x.source_tile, x.bytes, x.destination_start, x.destination_tile, sent, received)
        return sent, received

    @property
    def sent_words(self) -> Int64:
        """4-byte words that each tile sends (device tiles,) int64; a multicast counts once."""
        return self._loads[0]

    @property
    def received_words(self) -> Int64:
        """4-byte words that each tile receives (device tiles,) int64."""
        return self._loads[1]

    @property
    def tile_loads(self) -> TileLoads:
        """The sent and received words as a table; the columns are this phase's own."""
        return TileLoads.of(*self._loads)

    @cached_property
    def endpoint_lower_bound(self) -> int:
        """The largest of all sent and received words: a tile sends and receives at most one word a cycle each."""
        sent, received = self._loads
        return int(max(sent.max(initial=0), received.max(initial=0)))

    @cached_property
    def maximum_identical_destinations(self) -> int:
        """How often the most-written (copy, tile, offset, bytes) is written; 1 for a sound phase, 0 for an empty one.

        Counted on the lists of plans. A count has no list; the runs that it counts write every byte once.
        """
        return max((self._identical(part) for part in self.parts), default=0)

    @staticmethod
    def _identical(part: CopyPlan | CopyCount) -> int:
        if isinstance(part, CopyCount):
            return int(part.transfers > 0)
        x = part.transfers
        if not len(x):
            return 0
        size = np.repeat(x.bytes, np.diff(x.destination_start))
        order = np.lexsort((size, x.destination_offset, x.destination_tile))
        keys = np.stack([x.destination_tile[order], x.destination_offset[order], size[order]])
        starts = np.flatnonzero(np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0), [True]]))
        return int(np.diff(starts).max())

    def _plans(self) -> list[Transfers]:
        for i, part in enumerate(self.parts):
            if isinstance(part, CopyCount):
                raise CopyError("a count has no list", where=f"parts[{i}]", value=part, accepted="CopyPlan")
        return [part.transfers for part in self.parts if isinstance(part, CopyPlan)]

    @cached_property
    def fragments(self) -> Int64:
        """Per tile, the transfers that it sends plus the runs that it receives: (device tiles,) int64."""
        total = np.zeros(self.device_tiles, np.int64)
        for x in self._plans():
            total += np.bincount(x.source_tile, minlength=self.device_tiles)
            total += np.bincount(x.destination_tile, minlength=self.device_tiles)
        return total

    @cached_property
    def traffic(self) -> tuple[Int32, Int32, Int64]:
        """The traffic matrix, sparse: source tile, destination tile, words (each nonzero pair once, in that order).

        Each destination of a multicast counts.
        """
        keys, words = [], []
        for x in self._plans():
            ends = np.diff(x.destination_start)
            keys.append(np.repeat(x.source_tile.astype(np.int64), ends) * self.device_tiles + x.destination_tile)
            words.append(np.repeat((x.bytes + 3) // 4, ends))
        key, where = np.unique(np.concatenate(keys) if keys else np.empty(0, np.int64), return_inverse=True)
        total = np.zeros(len(key), np.int64)
        if len(key):
            np.add.at(total, where, np.concatenate(words))
        width = max(self.device_tiles, 1)
        return (key // width).astype(np.int32), (key % width).astype(np.int32), total
