"""Images made up on the spot: four kinds of stripes under noise, so that there is something to see.

Every worker draws its own images (`seed`), from the same four kinds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

SIZE = 16
CHANNELS = 3
#: How fast each class's stripes run down and across the image.
STRIPES = ((0.0, 1.0), (1.0, 0.0), (0.7, 0.7), (0.7, -0.7))
CLASSES = len(STRIPES)


def batches(seed: int, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Endless batches of images (N, C, H, W) and their classes."""
    random = np.random.RandomState(seed)
    down, across = np.mgrid[0:SIZE, 0:SIZE]
    directions = np.array(STRIPES)
    while True:
        labels = random.randint(0, CLASSES, size)
        # Stripes start anywhere, so no single pixel gives the class away.
        start = random.uniform(0, 2 * np.pi, (size, 1, 1))
        slope = directions[labels]
        phase = slope[:, 0, None, None] * down + slope[:, 1, None, None] * across + start
        noise = 1.5 * random.randn(size, CHANNELS, SIZE, SIZE)
        images = np.sin(phase)[:, None] + noise
        yield images.astype("float32"), labels.astype("int64")
