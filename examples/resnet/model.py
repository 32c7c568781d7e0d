"""A residual network small enough for a laptop: three stages, each a block with a shortcut."""

from __future__ import annotations

from itertools import pairwise

import paddle
from paddle import nn

from data import CHANNELS, CLASSES

WIDTHS = (16, 32, 64)


def normalise(channels: int) -> nn.Layer:
    # BatchNorm keeps running statistics of the images *this* worker saw, so they would differ from
    # worker to worker. GroupNorm keeps none.
    return nn.GroupNorm(num_groups=8, num_channels=channels)


class Block(nn.Layer):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2D(channels, width, 3, stride=stride, padding=1, bias_attr=False),
            normalise(width),
            nn.ReLU(),
            nn.Conv2D(width, width, 3, padding=1, bias_attr=False),
            normalise(width),
        )
        if stride == 1 and channels == width:
            self.shortcut = nn.Identity()
        else:
            self.shortcut = nn.Conv2D(channels, width, 1, stride=stride, bias_attr=False)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return nn.functional.relu(self.path(x) + self.shortcut(x))


class ResNet(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        first = WIDTHS[0]
        self.stem = nn.Sequential(
            nn.Conv2D(CHANNELS, first, 3, padding=1, bias_attr=False), normalise(first), nn.ReLU()
        )
        self.stages = nn.Sequential(
            *(
                Block(before, width, stride=1 if before == width else 2)
                for before, width in pairwise((first, *WIDTHS))
            )
        )
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(WIDTHS[-1], CLASSES)
        )

    def forward(self, images: paddle.Tensor) -> paddle.Tensor:
        return self.head(self.stages(self.stem(images)))
