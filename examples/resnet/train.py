"""Trains a small residual network on several workers at once, each on images of its own.

Runs as `python train.py` or under `python -m paddle.distributed.launch train.py`, on CPUs or on
one GPU per worker, with any number of workers, one included.

The run checks itself. Workers begin with different weights and see different images, so they can
end with the same parameters, to the last bit, only if they exchanged every gradient. It fails
unless they do, and unless the loss fell.

Settings, all optional:
  STEPS       how many steps to train (120)
  CHECKPOINT  a file to go on from and to save to every 10 steps; all workers must see it
  SHARE       0: never exchange gradients. The check then fails, which shows that it can.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import numpy as np
import paddle
import paddle.distributed as dist

from data import batches
from model import ResNet

try:
    from regatta import progress
except ImportError:  # not started by Regatta: nobody to report to

    def progress(step: int, total: int, **metrics: float) -> None:
        pass


STEPS = int(os.environ.get("STEPS", "120"))
SHARE = os.environ.get("SHARE", "1") != "0"
CHECKPOINT = os.environ.get("CHECKPOINT")
BATCH = 32
SAVE_EVERY = 10


def main() -> None:
    paddle.disable_signal_handler()  # a stopped worker should just end, without a page about it
    if not has_gpu():
        paddle.set_device("cpu")
    meet_the_others()

    paddle.seed(1 + dist.get_rank())
    network = ResNet()
    optimizer = paddle.optimizer.Adam(learning_rate=2e-3, parameters=network.parameters())
    done = resume(network, optimizer)
    say(f"starts at step {done} with parameters {digest(network)[:12]} on {paddle.get_device()}")
    if not done and dist.get_world_size() > 1 and len(set(everyones(digest(network)))) == 1:
        sys.exit("workers began with the same weights: ending with the same would prove nothing")

    losses = train(network, optimizer, done)
    complaint = judge(losses, everyones(digest(network)))
    if complaint:
        sys.exit(f"worker {dist.get_rank()}: {complaint}")


def has_gpu() -> bool:
    return paddle.is_compiled_with_cuda() and paddle.device.cuda.device_count() > 0


def meet_the_others() -> None:
    # Under the launcher PADDLE_TRAINERS_NUM is what the launcher made of its environment;
    # PADDLE_NNODES is still what the job asked for.
    asked = os.environ.get("PADDLE_NNODES", "1")
    if int(os.environ.get("PADDLE_TRAINERS_NUM", "1")) > 1:
        dist.init_parallel_env()
    if asked.isdigit() and dist.get_world_size() < int(asked):
        sys.exit(f"the job has {asked} workers, but {dist.get_world_size()} would train together")


def train(network: ResNet, optimizer: paddle.optimizer.Optimizer, done: int) -> list[float]:
    """The loss of every step from `done` on."""
    shared = SHARE and dist.get_world_size() > 1
    # Hands every worker rank 0's weights now, and the mean gradient of all workers at every step.
    model = paddle.DataParallel(network) if shared else network
    # A resumed run should not see the images of its first steps again.
    images_of = batches(seed=1000 * (1 + dist.get_rank()) + done, size=BATCH)
    losses = []
    for step in range(done + 1, STEPS + 1):
        images, labels = (paddle.to_tensor(array) for array in next(images_of))
        loss = paddle.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()

        losses.append(float(loss.numpy()))
        progress(step, STEPS, loss=losses[-1])
        if step % 20 == 0:
            say(f"step {step:3}  loss {losses[-1]:.3f}")
        if step % SAVE_EVERY == 0:
            save(network, optimizer, step)
    return losses


def resume(network: ResNet, optimizer: paddle.optimizer.Optimizer) -> int:
    """Take up the checkpoint, if there is one; the step it was saved after."""
    if not CHECKPOINT or not Path(CHECKPOINT).exists():
        return 0
    saved = paddle.load(CHECKPOINT)
    network.set_state_dict(saved["network"])
    optimizer.set_state_dict(saved["optimizer"])
    return int(saved["step"])


def save(network: ResNet, optimizer: paddle.optimizer.Optimizer, step: int) -> None:
    if not CHECKPOINT or dist.get_rank() != 0:
        return
    state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    # Whole or not at all: a worker may be stopped at any moment.
    half_written = f"{CHECKPOINT}.part"
    paddle.save(state, half_written)
    os.replace(half_written, CHECKPOINT)


def digest(network: ResNet) -> str:
    """A hash over the bytes of every trainable parameter."""
    seen = hashlib.sha256()
    for parameter in network.parameters():
        if not parameter.stop_gradient:
            seen.update(parameter.numpy().tobytes())
    return seen.hexdigest()


def everyones(mine: str) -> list[str]:
    if dist.get_world_size() == 1:
        return [mine]
    gathered: list[str] = []
    dist.all_gather_object(gathered, mine)
    return gathered


def judge(losses: list[float], digests: list[str]) -> str:
    """Print the result; return what is wrong with it, or nothing."""
    mine = digests[dist.get_rank()][:12]
    if len(set(digests)) > 1:
        shown = ", ".join(digest[:12] for digest in digests)
        return f"workers ended with different parameters: {shown}"
    ended = f"parameters {mine}"
    if len(digests) > 1:
        ended += f", bit for bit equal on {len(digests)} workers"
    if len(losses) < STEPS:  # the run that wrote the checkpoint saw the loss fall
        say(f"{len(losses)} more steps, {ended}")
        return ""
    first, last = float(np.mean(losses[:5])), float(np.mean(losses[-5:]))
    say(f"loss {first:.3f} -> {last:.3f}, {ended}")
    if not last < 0.5 * first:
        return f"the loss did not fall by half: {first:.3f} at first, {last:.3f} at the end"
    return ""


def say(line: str) -> None:
    print(f"worker {dist.get_rank()}: {line}", flush=True)


if __name__ == "__main__":
    main()
