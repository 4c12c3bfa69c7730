"""The tree of a proof: complete, hence a cover of every direction and threshold that matters."""

from __future__ import annotations

import base64
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipmech.checker.content import Look, reject, text_at

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
# Of the nodes of a part.
Counts = NDArray[np.int32]
Symbols = NDArray[np.uint8]

# A deeper or larger tree is refused as an attack.
DEEPEST = 4000
MOST_NODES = 1 << 27
# Characters and nodes that are unpacked between two looks at the clock; base85 has five characters
# for four bytes.
CHARACTERS, UNPACKED = 5 << 16, 1 << 22
# Nodes of a level between two numbers of cuts that are kept.
STRETCH = 1 << 12
# Centres and half-widths are multiples of this, so that they are exact.
NARROWEST = 2.0**-50


# Boxes: centres and half-widths, (n, d) arrays, and thresholds, (n,) arrays.
Box = tuple[Floats, Floats, Floats, Floats]


def _levels(symbols: Symbols, roots: int, look: Look) -> list[Symbols]:
    """The levels of complete trees, which the symbols must be: 0 a leaf, anything else a cut."""
    levels: list[Symbols] = []
    start, size = 0, roots
    while size:
        look()
        level = symbols[start : start + size]
        if len(level) < size:
            reject("proof.tree ends too soon: some directions have no leaf")
        if len(levels) == DEEPEST:
            reject("proof.tree is too deep")
        levels.append(level)
        start += size
        size = 2 * int(np.count_nonzero(level))
    if start != len(symbols):
        reject("proof.tree continues after its last leaf")
    return levels


class Levels:
    """A part of the tree, level by level: symbols 0 a leaf, 1 thresholds cut, 2 + j side j cut.

    counts : the leaves below each node, level by level
    """

    def __init__(self, symbols: Symbols, look: Look) -> None:
        self.levels = _levels(symbols, 1, look)
        # From the deepest level up.
        self.counts: list[Counts] = [np.ones(len(level), np.int32) for level in self.levels]
        for depth in range(len(self.levels) - 2, -1, -1):
            look()
            below = self.counts[depth + 1]
            self.counts[depth][self.levels[depth] != 0] = below[0::2] + below[1::2]
        self.leaves = int(self.counts[0].sum())
        self._cut_before: dict[int, Counts] = {}

    def first_child(self, depth: int, place: int) -> int:
        """The place in the next level where the children of a node begin, if it has any."""
        if depth not in self._cut_before:
            cut = np.zeros(len(self.levels[depth]) + 1, np.int32)
            np.cumsum(self.levels[depth] != 0, out=cut[1:])
            self._cut_before[depth] = cut
        return 2 * int(self._cut_before[depth][place])

    def boxes(self, roots: Box, look: Look) -> Box:
        """The boxes of all leaves, left to right."""
        boxes, places = roots, np.cumsum(self.counts[0], dtype=np.int64) - self.counts[0]
        d = roots[0].shape[1]
        out = (
            np.empty((self.leaves, d)), np.empty((self.leaves, d)),
            np.empty(self.leaves), np.empty(self.leaves),
        )  # fmt: skip
        for depth, level in enumerate(self.levels):
            look()
            leaf = level == 0
            for values, all_ in zip(boxes, out, strict=True):
                all_[places[leaf]] = values[leaf]
            cut = ~leaf
            places = np.repeat(places[cut], 2)
            if not len(places):
                break
            places[1::2] += self.counts[depth + 1][0::2]
            boxes = halves(level[cut], tuple(values[cut] for values in boxes))
        return out


def halves(symbols: Symbols, boxes: tuple[Floats, ...]) -> Box:
    """The two halves of each box, one after the other; no symbol is a leaf's."""
    centre, half, low, high = (np.repeat(values, 2, axis=0) for values in boxes)
    thresholds = np.flatnonzero(symbols == 1)
    least, most = low[2 * thresholds], high[2 * thresholds]
    middle = 0.5 * (least + most)
    if not ((least < middle) & (middle < most)).all():
        reject("proof.tree cuts finer than floats resolve")
    high[2 * thresholds] = middle
    low[2 * thresholds + 1] = middle
    sides = np.flatnonzero(symbols > 1)
    j = symbols[sides].astype(np.int64) - 2
    narrow = 0.5 * half[2 * sides, j]
    if len(narrow) and narrow.min() < NARROWEST:
        reject("proof.tree cuts finer than floats resolve")
    half[2 * sides, j] = half[2 * sides + 1, j] = narrow
    centre[2 * sides, j] -= narrow
    centre[2 * sides + 1, j] += narrow
    return centre, half, low, high


def hull(boxes: Box, first: int, count: int) -> Box:
    """The box around some leaves of one root: that of the node above them all."""
    centre, half, low, high = (values[first : first + count] for values in boxes)
    left, right = (centre - half).min(axis=0), (centre + half).max(axis=0)
    return (
        (0.5 * (left + right))[None], (0.5 * (right - left))[None],
        low.min(keepdims=True), high.max(keepdims=True),
    )  # fmt: skip


def _unpacked(text: str, look: Look) -> Symbols:
    """The symbols of a tree, from base85 and xz."""
    decoder = lzma.LZMADecompressor(memlimit=1 << 28)
    symbols = bytearray()
    start = 0
    try:
        while start < len(text) and not decoder.eof:
            data = base64.b85decode(text[start : start + CHARACTERS])
            start += CHARACTERS
            while (data or not decoder.needs_input) and not decoder.eof:
                look()
                symbols += decoder.decompress(data, UNPACKED)
                if len(symbols) > MOST_NODES:
                    reject(f"proof.tree has more than {MOST_NODES:,} nodes, the most that are read")
                data = b""
    except (ValueError, lzma.LZMAError, EOFError):
        reject("proof.tree cannot be unpacked")
    if not decoder.eof or decoder.unused_data or start < len(text):
        reject("proof.tree is cut short, or followed by something else")
    return np.frombuffer(symbols, dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Node:
    """A node of the tree: where it is, how many leaves are below it, and its box."""

    depth: int
    place: int
    leaves: int
    box: Box


class Tree:
    """The nodes of the proof, in hardly more memory than a byte for each.

    Cutting never loses anything, and the roots (all facets of the cube, all thresholds) are
    everything, so the leaves cover everything if the tree is complete; this is verified when it is
    read.

    leaves : all there are
    """

    def __init__(self, proof: dict[str, Any], dimension: int, look: Look) -> None:
        symbols = _unpacked(text_at(proof, "tree", "proof."), look)
        if len(symbols) and int(symbols.max()) >= 2 + dimension:
            reject("proof.tree has an unknown symbol")
        self.dimension = dimension
        self._look = look
        self._levels = _levels(symbols, max(1, 2 * dimension), look)
        self._cut_before = [_cut_before(level) for level in self._levels]
        self.leaves = len(symbols) - int(np.count_nonzero(symbols))

    def roots(self, low: float, high: float) -> list[Node]:
        """The facets of the cube, each with all thresholds."""
        axes = np.eye(self.dimension)
        found = []
        for place in range(len(self._levels[0])):
            j, sign = place // 2, 1.0 - 2.0 * (place % 2)
            centre, half = sign * axes[j : j + 1], 1.0 - axes[j : j + 1]
            if not self.dimension:
                centre = half = np.zeros((1, 0))
            box = centre, half, np.array([low]), np.array([high])
            found.append(Node(0, place, self._leaves_below(0, place), box))
        return found

    def children(self, node: Node) -> tuple[Node, Node]:
        """The halves of a node that is not a leaf."""
        depth, place = node.depth, node.place
        both = halves(self._levels[depth][place : place + 1], node.box)
        first = 2 * self._cuts(depth, place)
        leaves = self._leaves_below(depth + 1, first)

        def child(i: int, leaves: int) -> Node:
            centre, half, low, high = (values[i : i + 1] for values in both)
            return Node(depth + 1, first + i, leaves, (centre, half, low, high))

        return child(0, leaves), child(1, node.leaves - leaves)

    def below(self, node: Node) -> Symbols:
        """The tree below a node, level by level."""
        return np.concatenate(
            [
                level[first:last]
                for level, (first, last) in zip(
                    self._levels[node.depth :], self._spans(node.depth, node.place), strict=False
                )
            ]
        )

    def _leaves_below(self, depth: int, place: int) -> int:
        """Every cut makes one leaf more."""
        nodes = sum(last - first for first, last in self._spans(depth, place))
        return (nodes + 1) // 2

    def _spans(self, depth: int, place: int) -> Iterator[tuple[int, int]]:
        """Where the nodes below one lie: a stretch of each level, from its own on."""
        first, last = place, place + 1
        while first < last:
            self._look()
            yield first, last
            first, last = 2 * self._cuts(depth, first), 2 * self._cuts(depth, last)
            depth += 1

    def _cuts(self, depth: int, place: int) -> int:
        """How many nodes before a place of a level are cut; their children come first."""
        stretch = place // STRETCH
        near = self._levels[depth][stretch * STRETCH : place]
        return int(self._cut_before[depth][stretch]) + int(np.count_nonzero(near))


def _cut_before(level: Symbols) -> Numbers:
    """How many nodes are cut before each stretch of a level."""
    starts = np.arange(0, len(level), STRETCH)
    cut = [np.count_nonzero(level[start : start + STRETCH]) for start in starts]
    return np.concatenate([[0], np.cumsum(cut, dtype=np.int64)])
