"""The tree of a proof: complete, hence a cover of every direction and threshold that matters."""

from __future__ import annotations

import base64
import lzma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipmech.check.content import reject, text_at

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

# A deeper tree, or a larger one, is no proof but an attack.
DEEPEST = 4000
MOST_NODES = 1 << 25
# Centres and half-widths are multiples of this, so that they are exact.
NARROWEST = 2.0**-50


class Tree:
    """The nodes of the proof, level by level.

    Symbols: 0 a leaf, 1 the thresholds cut in two, 2 + j side j cut in two. Cutting never loses
    anything, and the roots (all facets of the cube, all thresholds) are everything, so the leaves
    cover everything if the tree is complete; that is what is checked here.
    """

    def __init__(self, proof: dict[str, Any], dimension: int) -> None:
        text = text_at(proof, "tree", "proof.")
        try:
            data = base64.b85decode(text)
            decoder = lzma.LZMADecompressor(memlimit=1 << 28)
            symbols = np.frombuffer(decoder.decompress(data, MOST_NODES), dtype=np.uint8)
        except (ValueError, lzma.LZMAError, EOFError):
            reject("proof.tree cannot be unpacked")
        if not decoder.eof or decoder.unused_data:
            reject("proof.tree is cut short, too long, or followed by something else")
        if len(symbols) and int(symbols.max()) >= 2 + dimension:
            reject("proof.tree has an unknown symbol")
        self.dimension = dimension
        self.levels: list[NDArray[np.uint8]] = []
        start, size = 0, max(1, 2 * dimension)
        while size:
            level = symbols[start : start + size]
            if len(level) < size:
                reject("proof.tree ends too soon: some directions have no leaf")
            if len(self.levels) == DEEPEST:
                reject("proof.tree is too deep")
            self.levels.append(level)
            start += size
            size = 2 * int(np.count_nonzero(level))
        if start != len(symbols):
            reject("proof.tree goes on after its last leaf")
        # Leaves below each node, from the deepest level up; then their places, left to right.
        self.counts: list[Numbers] = [np.ones(len(level), np.int64) for level in self.levels]
        for depth in range(len(self.levels) - 2, -1, -1):
            below = self.counts[depth + 1]
            self.counts[depth][self.levels[depth] != 0] = below[0::2] + below[1::2]
        self.leaves = int(self.counts[0].sum())
        self._children: dict[int, Numbers] = {}

    def first_child(self, depth: int, place: int) -> int:
        """The place of a node's first child in the next level."""
        if depth not in self._children:
            self._children[depth] = 2 * (np.cumsum(self.levels[depth] != 0) - 1)
        return int(self._children[depth][place])

    def boxes(self, low: float, high: float) -> tuple[Floats, Floats, Floats, Floats]:
        """Centres and half-widths, (leaves, d), and thresholds of all leaves, left to right."""
        d = self.dimension
        axes = np.eye(d)
        signs = np.tile([1.0, -1.0], d)
        centre = np.repeat(axes, 2, axis=0) * signs[:, None] if d else np.zeros((1, 0))
        half = 1.0 - np.repeat(axes, 2, axis=0) if d else np.zeros((1, 0))
        lows, highs = np.full(len(centre), low), np.full(len(centre), high)
        places = np.cumsum(self.counts[0]) - self.counts[0]
        out = (
            np.empty((self.leaves, d)), np.empty((self.leaves, d)),
            np.empty(self.leaves), np.empty(self.leaves),
        )  # fmt: skip
        for depth, level in enumerate(self.levels):
            leaf = level == 0
            for values, all_ in zip((centre, half, lows, highs), out, strict=True):
                all_[places[leaf]] = values[leaf]
            cut = ~leaf
            symbols, places = level[cut], np.repeat(places[cut], 2)
            if not len(symbols):
                break
            places[1::2] += self.counts[depth + 1][0::2]
            centre, half, lows, highs = (
                np.repeat(values[cut], 2, axis=0) for values in (centre, half, lows, highs)
            )
            thresholds = np.flatnonzero(symbols == 1)
            middle = 0.5 * (lows[2 * thresholds] + highs[2 * thresholds])
            highs[2 * thresholds] = middle
            lows[2 * thresholds + 1] = middle
            sides = np.flatnonzero(symbols > 1)
            j = symbols[sides].astype(np.int64) - 2
            narrow = 0.5 * half[2 * sides, j]
            if len(narrow) and narrow.min() < NARROWEST:
                reject("proof.tree cuts finer than floats can tell")
            half[2 * sides, j] = half[2 * sides + 1, j] = narrow
            centre[2 * sides, j] -= narrow
            centre[2 * sides + 1, j] += narrow
        return out

    @staticmethod
    def hull(
        centre: Floats, half: Floats, low: Floats, high: Floats, first: int, count: int
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """The box around some leaves of one root: that of the node above them all."""
        rows = slice(first, first + count)
        left = (centre[rows] - half[rows]).min(axis=0)
        right = (centre[rows] + half[rows]).max(axis=0)
        return (
            (0.5 * (left + right))[None], (0.5 * (right - left))[None],
            low[rows].min(keepdims=True), high[rows].max(keepdims=True),
        )  # fmt: skip
