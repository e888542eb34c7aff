"""The peer of benchmarks/recovery: the digits under torchft, whose replica groups go on without one that is lost and take it in again.

Started by torchrun once for each replica group of one process, beside a lighthouse: elastic_torchft.py DATA FOLDER GROUP GROUPS. It appends to
FOLDER/GROUP.log a line when it has applied its first step, `first TIME STEP PID`, and one, `of-N TIME STEP PID`, when it has applied the first step that
another number of groups, N, took part in; its newest step stands in FOLDER/GROUP.step. It never ends by itself.
"""

import datetime
import sys

import torch
import torch.nn.functional as F
import torchft

from elastic_torch import Diary, batch_of, digits, network, optimizer_of

TIMEOUT = datetime.timedelta(seconds=5)   # as torchft's own example has it for gloo; who is no neighbour of the lost one waits for it


def average(manager, model):
    """One all-reduce of all gradients. torchft's DistributedDataParallel ends its process when a peer is lost (0.2.0 with PyTorch 2.15)."""
    together = torch.cat([each.grad.flatten() for each in model.parameters()])
    manager.allreduce(together).wait()
    for each, part in zip(model.parameters(), together.split([each.numel() for each in model.parameters()])):
        each.grad.copy_(part.view_as(each))


def main():
    data, folder, group, groups = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    diary, (x, y), model = Diary(folder, group), digits(data), network()
    inner = optimizer_of(model)

    def load(state):
        model.load_state_dict(state["model"])
        inner.load_state_dict(state["optimizer"])

    manager = torchft.Manager(pg=torchft.ProcessGroupGloo(timeout=TIMEOUT), load_state_dict=load, min_replica_size=groups - 2, replica_id=f"group_{group}",
                              state_dict=lambda: {"model": model.state_dict(), "optimizer": inner.state_dict()})
    optimizer, size = torchft.Optimizer(manager, inner), 0
    while True:
        inputs, labels = batch_of(manager.current_step(), group, groups, x, y)
        before = manager.current_step()
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        average(manager, model)
        optimizer.step()
        if manager.current_step() == before:
            continue   # it was not committed
        diary.applied(manager.current_step())
        if manager.num_participants() != size:
            size = manager.num_participants()
            diary.say(f"of-{size}", manager.current_step())


if __name__ == "__main__":
    main()
