"""The peer of benchmarks/train: the same models, sizes, batches and optimizers in PyTorch, DDP over gloo, one thread per rank.

Started by torchrun, one process per rank: train_torch.py CASE STEPS [DATA]. Rank 0 prints one JSON line: steps, rate (steps per second over the
last four fifths), the losses' last value, and for fashion the seconds until the target accuracy.
"""

import gzip
import json
import os
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import gpt_torch


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(64, 128), nn.Linear(128, 10)

    def forward(self, x):
        return self.out(F.relu(self.hidden(x)))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.hidden, self.out = nn.Linear(32 * 7 * 7, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.out(F.relu(self.hidden(x.flatten(1))))


def idx(path):
    with gzip.open(path) as file:
        raw = file.read()
    dims = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(raw[3])]
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=4 + 4 * len(dims)).reshape(dims).copy())


def images(folder, name):
    x, y = idx(f"{folder}/{name}-images-idx3-ubyte.gz"), idx(f"{folder}/{name}-labels-idx1-ubyte.gz")
    return (x.float() / 255 - 0.2860).div(0.3530).unsqueeze(1), y.long()


def make(case, data):
    """model, optimizer, batches(step) for this rank, and what evaluates (or None)."""
    rank, world = dist.get_rank(), dist.get_world_size()
    if case == "digits":
        rows = torch.from_numpy(np.loadtxt(gzip.open(data), delimiter=",", dtype=np.float32))
        x, y, model, batch = rows[:, :-1] / 16, rows[:, -1].long(), Mlp(), 64 // world
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    elif case == "fashion":
        (x, y), model, batch = images(data, "train"), Cnn(), 128
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    else:
        text = np.frombuffer(open(data, "rb").read(), np.uint8)
        rows = torch.from_numpy(text[:len(text) // 65 * 65].astype(np.int64).reshape(-1, 65))
        x, y, model, batch = rows[:, :-1], rows[:, 1:], gpt_torch.Gpt(layers=4, heads=4, width=128, block=64, vocabulary=256), 12
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(1)
    order = torch.cat([torch.randperm(len(x), generator=generator) for _ in range(8)])

    def batches(step):
        begin = (step * world + rank) * batch % (len(order) - batch)
        chosen = order[begin:begin + batch]
        return x[chosen], y[chosen]

    test = images(data, "t10k") if case == "fashion" else None
    return model, optimizer, batches, test


def accuracy(model, test):
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in zip(test[0].split(500), test[1].split(500)))
    return right / len(test[1])


def main():
    case, steps, data = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    model, optimizer, batches, test = make(case, data)
    ddp = DistributedDataParallel(model) if dist.get_world_size() > 1 else model
    begin = time.perf_counter()
    mark, reached, evaluating = None, None, 0.0
    every = 60000 // (128 * dist.get_world_size())
    for step in range(steps):
        if step == steps // 5:
            mark, evaluating = time.perf_counter(), 0.0
        x, y = batches(step)
        loss = ddp(x, y) if case.startswith("gpt") else F.cross_entropy(ddp(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if test and (step + 1) % every == 0:
            t = time.perf_counter()
            if accuracy(model, test) >= 0.90 and reached is None:
                reached = t - begin
            evaluating += time.perf_counter() - t
    rate = (steps - steps // 5) / (time.perf_counter() - mark - evaluating)
    if dist.get_rank() == 0:
        print(json.dumps({"steps": steps, "stepsPerSecond": rate, "loss": loss.item(), "targetSeconds": reached}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
