"""Philox 4x32-10, the counter-based random bits of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).

Ten rounds of a keyed bijection turn a counter of four 32-bit words into four random words. Here the key is the
64-bit seed, and the counter is the pair (draw number, block), both 64 bits, low words first. A draw hands its words out
block after block: word i of a draw is word i % 4 of block i // 4, so every element can be computed on its own, in any
order, with the same bits on every device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_M0, _M1 = 0xD2511F53, 0xCD9E8D57
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_MASK = 0xFFFFFFFF
_ROUNDS = 10
_CHUNK = 1 << 14
"""Blocks that are computed together: the working set stays in the processor's cache."""
_FEW = 8
"""Up to so many blocks Python's integers are faster than NumPy's calls for each step of a round."""


def words(xp: Any, seed: int, draw: int, count: int, first: int = 0) -> Any:
    """Return `count` words (uint32) of draw number `draw` of generator `seed`, from word `first` on."""
    skipped = first % 4
    blocks = -(-(count + skipped) // 4)
    if blocks <= _FEW and xp is np:
        return _few(seed, draw, first // 4, blocks)[skipped : skipped + count]
    out = xp.empty((blocks, 4), np.uint32)
    chunk = _CHUNK if xp is np else max(blocks, 1)
    for start in range(0, blocks, chunk):
        _fill(xp, out[start : start + chunk], seed, draw, first // 4 + start)
    return out.reshape(-1)[skipped : skipped + count]


def _few(seed: int, draw: int, start: int, blocks: int) -> Any:
    """Return the words of a few blocks from number `start` on, as `rounds` gives them."""
    made: list[int] = []
    for block in range(start, start + blocks):
        c0, c1, c2, c3 = draw & _MASK, (draw >> 32) & _MASK, block & _MASK, block >> 32
        k0, k1 = seed & _MASK, (seed >> 32) & _MASK
        for _ in range(_ROUNDS):
            p0, p1 = c0 * _M0, c2 * _M1
            c0, c1 = (p1 >> 32) ^ c1 ^ k0, p1 & _MASK
            c2, c3 = (p0 >> 32) ^ c3 ^ k1, p0 & _MASK
            k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
        made += c0, c1, c2, c3
    return np.array(made, np.uint32)


def words64(xp: Any, seed: int, draw: int, count: int, first: int = 0) -> Any:
    """Return `count` pairs of words as uint64, from pair `first` on: pair i is words 2i (high) and 2i + 1 (low)."""
    pairs = words(xp, seed, draw, 2 * count, 2 * first).reshape(-1, 2)
    return (pairs[:, 0].astype(np.uint64) << np.uint64(32)) | pairs[:, 1]


def _fill(xp: Any, out: Any, seed: int, draw: int, start: int) -> None:
    """Write the blocks from number `start` to `out`."""
    block = xp.arange(start, start + out.shape[0], dtype=np.uint64)
    counter = [np.uint64(draw & _MASK), np.uint64((draw >> 32) & _MASK), block & _MASK, block >> np.uint64(32)]
    counter = [xp.full(block.shape, c) if i < 2 else c for i, c in enumerate(counter)]
    for i, word in enumerate(rounds(xp, counter, (seed & _MASK, (seed >> 32) & _MASK))):
        out[:, i] = word


def rounds(xp: Any, counter: list[Any], key: tuple[int, int]) -> list[Any]:
    """Return the four random words of each counter; words are 32-bit numbers in uint64 arrays."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    m0, m1, mask, half = np.uint64(_M0), np.uint64(_M1), np.uint64(_MASK), np.uint64(32)
    for _ in range(_ROUNDS):
        p0, p1 = c0 * m0, c2 * m1
        c0, c2 = p1 >> half, p0 >> half
        c0 ^= c1
        c0 ^= np.uint64(k0)
        c2 ^= c3
        c2 ^= np.uint64(k1)
        p1 &= mask
        p0 &= mask
        c1, c3 = p1, p0
        k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
    return [c0, c1, c2, c3]
