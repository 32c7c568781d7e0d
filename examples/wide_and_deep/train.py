"""Trains wide & deep with parameter servers. Servers and workers run this same program.

Paddle learns from the environment which of the two it is (`TRAINING_ROLE`) and where the others
are; the job file needs to say none of it.

The run checks itself and fails unless the loss fell and the worker predicts well on ids that only
*another* worker trained: it can know about those from the servers alone.

Settings, all optional:
  CHUNKS  how many files of 20 batches each worker trains on (20)
  SHARD   `0/2`: train on the data of worker 0 of 2, whoever really takes part. A worker that is
          alone with a shard fails the check, which shows that the check can fail.
"""

from __future__ import annotations

import contextlib
import io
import os
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import paddle
from paddle.distributed import fleet

from data import SLOTS, ClickLog, auc
from model import Network, build

try:
    from regatta import progress
except ImportError:  # not started by Regatta: nobody to report to

    def progress(step: int, total: int, **metrics: float) -> None:
        pass


CHUNKS = int(os.environ.get("CHUNKS", "20"))
BATCHES_PER_CHUNK = 20
BATCH = 64
TEST_ROWS = 2000
#: What a run must reach on another worker's ids, and by how much it must beat ids nobody trained.
GOOD_AUC = 0.8
CLEARLY = 0.1


def main() -> None:
    # Gloo, which the workers' barriers need, is only set up when static mode comes first.
    paddle.enable_static()
    # A stopped server should just end; Paddle's handler would print a page about the signal.
    paddle.disable_signal_handler()
    join()
    shard, shards = my_shard()
    log = ClickLog(shard, shards)
    network = build(log.vocabulary)
    if fleet.is_server():
        distribute(network)
        serve()
    else:
        wait_until_open(fleet.server_endpoints())
        distribute(network)
        work(network, log)


def join() -> None:
    """Find the role and the peers in the environment, and meet the other workers."""
    meeting_point = os.environ.get("PADDLE_GLOO_HTTP_ENDPOINT")
    if meeting_point and os.environ["TRAINING_ROLE"] == "TRAINER":
        # Paddle waits for server 0 to open it, but looks only every 3 s.
        wait_until_open([meeting_point])
    with without_chatter(), scratch_folder():
        fleet.init(fleet.PaddleCloudRoleMaker(is_collective=False), log_level="WARNING")


def my_shard() -> tuple[int, int]:
    """Which part of the data this worker trains on: its own, unless SHARD says otherwise."""
    if "SHARD" in os.environ:
        shard, shards = os.environ["SHARD"].split("/")
        return int(shard), int(shards)
    # A server trains on nothing and only has to know how large the tables are.
    return (0 if fleet.is_server() else fleet.worker_index()), fleet.worker_num()


def distribute(network: Network) -> None:
    """Split the program between workers (gradients) and servers (parameters and optimizer)."""
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True  # a worker never waits for another's gradients
    optimizer = paddle.optimizer.Adam(learning_rate=0.01)
    with without_chatter():
        fleet.distributed_optimizer(optimizer, strategy).minimize(network.loss)


def serve() -> None:
    with without_chatter():
        fleet.init_server()
    endpoint = fleet.server_endpoints()[fleet.server_index()]
    say(f"server {fleet.server_index()}: holds its part of the parameters at {endpoint}")
    fleet.run_server()  # until it is stopped: the job ends with its workers


def work(network: Network, log: ClickLog) -> None:
    executor = paddle.static.Executor(paddle.CPUPlace())
    with without_chatter():
        executor.run(paddle.static.default_startup_program())
        fleet.init_worker()
    say(f"{me()}: connected; workers: {fleet.worker_num()}, servers: {fleet.server_num()}")

    first, last = train(executor, network, log)
    # The score is about what the others learnt, so they must have finished learning.
    fleet.barrier_worker()
    complaint = judge(executor, network, log, first, last)
    fleet.barrier_worker()
    # An exception that leaves a connected worker ends in a crash inside Paddle, so the verdict
    # waits until the worker is disconnected.
    with without_chatter():
        fleet.stop_worker()
    if complaint:
        sys.exit(f"{me()}: {complaint}")


def train(executor: paddle.static.Executor, network: Network, log: ClickLog) -> tuple[float, float]:
    """Mean loss of the first and of the last chunk."""
    # Paddle's own reader and trainer, not a feed loop: only they pull the dense parameters that
    # other workers changed.
    dataset = paddle.distributed.QueueDataset()
    dataset.init(batch_size=BATCH, thread_num=1, pipe_command="cat", use_var=network.inputs)
    losses = []
    with scratch_folder() as folder:
        for chunk in range(1, CHUNKS + 1):
            file = log.write(folder / "clicks", BATCH * BATCHES_PER_CHUNK)
            dataset.set_filelist([str(file)])
            with without_chatter():
                executor.train_from_dataset(paddle.static.default_main_program(), dataset)
            losses.append(take_loss(network))
            progress(chunk * BATCHES_PER_CHUNK, CHUNKS * BATCHES_PER_CHUNK, loss=losses[-1])
            if chunk % 5 == 1 or chunk == CHUNKS:
                say(f"{me()}: batch {chunk * BATCHES_PER_CHUNK:4}  loss {losses[-1]:.3f}")
    return losses[0], losses[-1]


def take_loss(network: Network) -> float:
    """The mean loss since the last time, out of the sum that the program keeps."""
    total = paddle.static.global_scope().find_var(network.loss_sum.name).get_tensor()
    mean = float(np.array(total)[0]) / BATCHES_PER_CHUNK
    total.set(np.zeros(1, "float32"), paddle.CPUPlace())
    return mean


def judge(
    executor: paddle.static.Executor, network: Network, log: ClickLog, first: float, last: float
) -> str:
    """Print the result; return what is wrong with it, or nothing."""
    other = (log.shard + 1) % log.shards
    others = score(executor, network, log, log.only(other))
    nobodys = score(executor, network, log, log.nobodys())
    whose = f"ids of worker {other}" if other != log.shard else "its own ids"
    say(
        f"{me()}: loss {first:.2f} -> {last:.2f}, "
        f"auc on {whose}: {others:.2f} (on ids nobody trained: {nobodys:.2f})"
    )
    if not last < 0.8 * first:
        return f"the loss did not fall: {first:.3f} at first, {last:.3f} at the end"
    if others < GOOD_AUC or others < nobodys + CLEARLY:
        return (
            f"auc {others:.2f} on {whose} is too low for parameters that are shared: "
            f"it must reach {GOOD_AUC} and beat ids nobody trained ({nobodys:.2f}) by {CLEARLY}"
        )
    return ""


def score(
    executor: paddle.static.Executor, network: Network, log: ClickLog, ids: np.ndarray
) -> float:
    categories, numbers, clicks = log.rows(ids, TEST_ROWS)
    feed = {f"slot_{i}": categories[:, i : i + 1] for i in range(SLOTS)}
    feed["numbers"] = numbers
    program = paddle.static.default_main_program().clone(for_test=True)
    # Even cloned for testing, the program pushes gradients; pruned, it only predicts.
    (predictions,) = executor.run(
        program, feed=feed, fetch_list=[network.prediction.name], use_prune=True
    )
    return auc(clicks, predictions.ravel())


def wait_until_open(endpoints: list[str], patience: float = 120.0) -> None:
    deadline = time.monotonic() + patience
    for endpoint in endpoints:
        host, port = endpoint.rsplit(":", 1)
        while True:
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    break
            if time.monotonic() > deadline:
                sys.exit(f"nothing listens at {endpoint} after {patience:.0f} s: is its server up?")
            time.sleep(0.1)


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A working directory to throw away: Paddle leaves logs and dumps in the one it finds."""
    with tempfile.TemporaryDirectory(prefix="wide-and-deep-") as folder, contextlib.chdir(folder):
        yield Path(folder)


@contextlib.contextmanager
def without_chatter() -> Iterator[None]:
    """Paddle prints its inner workings. Errors are exceptions, and those still come out."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def me() -> str:
    return f"worker {fleet.worker_index()}"


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
