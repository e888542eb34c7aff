#!/usr/bin/env python3
"""Stands for a synchronous training of another framework: each step computes, and then waits until all members have.

Its members meet as those of PyTorch do, at MASTER_ADDR and MASTER_PORT, by RANK and WORLD_SIZE. SLOW_RANK computes 25 ms for a step, the others 10.
"""

import os
import socket
import time

from paceline_steps import Steps

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
MASTER = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
SLOW_RANK, STEPS = int(os.environ.get("SLOW_RANK", "-1")), int(os.environ.get("STEPS", "2000"))


class Barrier:
    """All wait for all: everybody sends rank 0 a byte, which answers when it has WORLD - 1 of them."""

    def __init__(self):
        if RANK == 0:
            with socket.create_server(MASTER) as server:
                self.others = [server.accept()[0] for _ in range(WORLD - 1)]
            return
        while True:
            try:
                self.others = [socket.create_connection(MASTER, timeout=60)]
                return
            except OSError:
                time.sleep(0.05)   # rank 0 is not there yet

    def wait(self):
        if RANK != 0:
            self.others[0].sendall(b".")
        for other in self.others:
            if not other.recv(1):
                raise SystemExit("another member is gone")
        if RANK == 0:
            for other in self.others:
                other.sendall(b".")


barrier, steps = Barrier(), Steps()
for step in range(1, STEPS + 1):
    begin = time.monotonic()
    time.sleep(0.025 if RANK == SLOW_RANK else 0.010)   # the forward and backward pass
    computed = time.monotonic()
    barrier.wait()                                      # the all-reduce, where the fast ones wait for the slow one
    steps.tell(step, compute=computed - begin, wait=time.monotonic() - computed)
print(f"rank {RANK} has done {STEPS} steps")
