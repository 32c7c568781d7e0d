"""Click logs made up on the spot, in the shape of Criteo's: 13 numbers, 26 categories, a click.

Each category slot has its own small vocabulary, cut into blocks:

    common      ids that every worker sees
    shard 0..n  ids that only the worker of that shard trains on
    nobody      ids that no worker ever trains on

Whether a row is clicked follows a fixed taste for ids: who has learnt an id's embedding can predict
with it, and nobody else can. That is how `train.py` finds out whether workers share what they
learn.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

NUMBERS = 13
SLOTS = 26
COMMON_IDS = 10
IDS_PER_SHARD = 15
#: How far clicks follow taste rather than chance. The best possible AUC here is about 0.93.
CERTAINTY = 4.0


class ClickLog:
    """The clicks of one shard out of `shards`, and test sets of any block of ids."""

    def __init__(self, shard: int, shards: int) -> None:
        self.shard, self.shards = shard, shards
        self.vocabulary = COMMON_IDS + IDS_PER_SHARD * (shards + 1)
        # The same taste for every worker, other rows for each.
        self._taste = np.random.RandomState(7).randn(SLOTS, self.vocabulary) / np.sqrt(SLOTS)
        self._random = np.random.RandomState(100 + shard)

    def own(self) -> np.ndarray:
        """What this shard trains on: the common ids and its own block."""
        return np.concatenate([np.arange(COMMON_IDS), self.only(self.shard)])

    def only(self, shard: int) -> np.ndarray:
        """Ids that this shard alone trains on."""
        first = COMMON_IDS + IDS_PER_SHARD * shard
        return np.arange(first, first + IDS_PER_SHARD)

    def nobodys(self) -> np.ndarray:
        return self.only(self.shards)

    def rows(self, ids: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`count` impressions whose categories all come from `ids`: categories, numbers, clicks."""
        chosen = self._random.choice(ids, (count, SLOTS))
        numbers = self._random.randn(count, NUMBERS)
        liking = self._taste[np.arange(SLOTS), chosen].sum(axis=1) + 0.3 * numbers[:, 0]
        chance = 1 / (1 + np.exp(-CERTAINTY * liking))
        clicks = self._random.rand(count) < chance
        # One table holds all slots, so an id says which slot it belongs to.
        categories = chosen + np.arange(SLOTS) * self.vocabulary
        return categories, numbers.astype("float32"), clicks.astype("float32")

    def write(self, path: Path, count: int) -> Path:
        """`count` rows as Paddle's MultiSlot text: per input, how many values, then the values."""
        categories, numbers, clicks = self.rows(self.own(), count)
        with path.open("w") as file:
            for row in range(count):
                slots = " ".join(f"1 {category}" for category in categories[row])
                dense = " ".join(f"{number:.4f}" for number in numbers[row])
                file.write(f"{slots} {NUMBERS} {dense} 1 {clicks[row]:.0f}\n")
        return path


def auc(clicks: np.ndarray, predictions: np.ndarray) -> float:
    """The chance that a clicked row ranks above one that was not: 0.5 is a guess, 1 perfect."""
    ranks = np.empty(len(predictions))
    ranks[np.argsort(predictions)] = np.arange(1, len(predictions) + 1)
    clicked = clicks > 0.5
    positives, negatives = clicked.sum(), (~clicked).sum()
    return float((ranks[clicked].sum() - positives * (positives + 1) / 2) / (positives * negatives))
