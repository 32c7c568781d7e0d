"""Wide & deep: a linear model that remembers ids, beside a network that generalises over them.

Both read their embeddings from sparse tables that live on the parameter servers. A worker never
holds a whole table; it pulls the rows that its batch names and pushes their gradients back.
"""

from __future__ import annotations

from dataclasses import dataclass

import paddle
from paddle.static import Variable

from data import NUMBERS, SLOTS

EMBEDDING = 8
HIDDEN = (32, 16)


@dataclass(frozen=True)
class Network:
    #: In the order in which a line of the data file has them.
    inputs: list[Variable]
    prediction: Variable
    loss: Variable
    #: The sum of all batches' losses. It outlives a batch, so Python can read it between files.
    loss_sum: Variable


def build(vocabulary: int) -> Network:
    slots = [paddle.static.data(f"slot_{i}", [None, 1], "int64") for i in range(SLOTS)]
    numbers = paddle.static.data("numbers", [None, NUMBERS], "float32")
    click = paddle.static.data("click", [None, 1], "float32")

    rows = vocabulary * SLOTS
    wide = paddle.sum(_look_up(slots, "wide", rows, 1), axis=1, keepdim=True)
    deep = paddle.concat([_look_up(slots, "deep", rows, EMBEDDING), numbers], axis=1)
    for size in HIDDEN:
        deep = paddle.static.nn.fc(deep, size, activation="relu")
    logit = wide + paddle.static.nn.fc(deep, 1)
    loss = paddle.nn.functional.binary_cross_entropy_with_logits(logit, click)

    loss_sum = paddle.static.create_global_var([1], 0.0, "float32", True, name="loss_sum")
    paddle.assign(loss_sum + loss, output=loss_sum)
    prediction = paddle.nn.functional.sigmoid(logit)
    return Network([*slots, numbers, click], prediction, loss, loss_sum)


def _look_up(slots: list[Variable], table: str, rows: int, width: int) -> Variable:
    """The embeddings of all slots side by side, out of one table on the servers."""
    start = paddle.nn.initializer.Uniform(-0.05, 0.05)
    found = [
        paddle.static.nn.sparse_embedding(
            slot, [rows, width], param_attr=paddle.ParamAttr(name=table, initializer=start)
        )
        for slot in slots
    ]
    return paddle.concat([paddle.reshape(one, [-1, width]) for one in found], axis=1)
