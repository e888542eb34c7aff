"""The peer of benchmarks/recovery: the digits by DDP over gloo under torchrun, which starts all workers again when one is lost.

Started by torchrun, one process per rank: elastic_torch.py DATA FOLDER EVERY. Rank 0 saves every EVERY steps, as users of torchrun do, and all go on from
what was saved last. Each rank appends to FOLDER/RANK.log a line when it has applied its first step, `first TIME STEP PID`, and its newest step stands in
FOLDER/RANK.step. It never ends by itself.
"""

import gzip
import os
import pathlib
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 256


def digits(path):
    rows = torch.from_numpy(np.loadtxt(gzip.open(path), delimiter=",", dtype=np.float32))
    return rows[:, :-1] / 16, rows[:, -1].long()


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def batch_of(step, rank, world, x, y):
    size = BATCH // world
    begin = (step * world + rank) * size % (len(x) - size)
    return x[begin:begin + size], y[begin:begin + size]


class Diary:
    """What the benchmark reads."""

    def __init__(self, folder, rank):
        self.log, self.newest, self.first = pathlib.Path(folder) / f"{rank}.log", os.open(f"{folder}/{rank}.step", os.O_CREAT | os.O_RDWR), True

    def say(self, kind, step):
        with open(self.log, "a") as log:
            log.write(f"{kind} {time.time():.6f} {step} {os.getpid()}\n")

    def applied(self, step):
        if self.first:
            self.first = False
            self.say("first", step)
        os.pwrite(self.newest, f"{step:12}".encode(), 0)


def main():
    data, folder, every = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    diary, (x, y) = Diary(folder, rank), digits(data)
    model = DistributedDataParallel(network())
    optimizer, saved, step = optimizer_of(model), folder / "saved.pt", 0
    if saved.exists():
        state = torch.load(saved)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    while True:
        inputs, labels = batch_of(step, rank, world, x, y)
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        step += 1
        diary.applied(step)
        if rank == 0 and step % every == 0:
            torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, folder / "saving.pt")
            os.replace(folder / "saving.pt", saved)


if __name__ == "__main__":
    main()
