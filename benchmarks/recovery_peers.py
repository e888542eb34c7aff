"""The peers of benchmarks/recovery on this machine: torchrun, which starts all workers again, and torchft, whose replica groups go on.

One round each: four processes train what ours train, one is killed, and their diaries (peers/elastic_torch.py) tell when the others had applied the next
step, and when the step after which all four were there again."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "paceline/venv"
DATA = ROOT / "examples/data/digits.csv.gz"
MEMBERS, VICTIM, EVERY, BEFORE = 4, 1, 10, 50   # members, the rank that is killed, steps between checkpoints, steps before the kill
SECONDS, END_SECONDS = 120, 60
PEERS = ("torchrun", "torchft")
# Without it gloo's workers find the addresses of those that were killed in the agent's store when they start again, and fail (PyTorch 2.15).
OWN_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def missing(name):
    """Why this peer can't run here; empty: it can."""
    module = {"torchrun": "torch", "torchft": "torchft"}[name]
    found = (VENV / "bin/python").exists() and subprocess.run([VENV / "bin/python", "-c", f"import {module}"], capture_output=True).returncode == 0
    return "" if found else f"there is no {module} in {VENV}; scripts/setup --benchmarks installs it"


def wait_for(what, look):
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if value := look():
            return value
        time.sleep(0.02)
    raise TimeoutError(f"not within {SECONDS} s: {what}")


def lines_of(folder, rank):
    """(kind, seconds, step, process) of a rank's diary."""
    path = folder / f"{rank}.log"
    words = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [(kind, float(at), int(step), int(pid)) for kind, at, step, pid in words]


def newest_step(folder, rank):
    path = folder / f"{rank}.step"
    text = path.read_text().strip() if path.exists() else ""
    return int(text) if text else 0


class Processes:
    """Each leads a session of its own; they end with the block."""

    def __enter__(self):
        self.all = []
        return self

    def start(self, log, *words, **environment):
        with open(log, "ab") as output:
            self.all.append(subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                                             env=dict(os.environ, OMP_NUM_THREADS="1", TMPDIR=str(log.parent), **environment)))

    def __exit__(self, *_):
        for process in self.all:
            process.terminate()
        for process in self.all:
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def wait_for_all(what, look, ranks):
    """What `look` finds for each rank, once it finds something for all."""
    def found():
        each = [look(rank) for rank in ranks]
        return each if all(each) else None
    return wait_for(what, found)


def trains(folder):
    return all(newest_step(folder, rank) > BEFORE for rank in range(MEMBERS))


def kill(folder):
    """When, and the newest step before that."""
    pid = [pid for kind, _, _, pid in lines_of(folder, VICTIM) if kind == "first"][-1]
    step = max(newest_step(folder, rank) for rank in range(MEMBERS))
    at = time.time()
    os.kill(pid, signal.SIGKILL)
    return at, step


def later(folder, rank, fault_at, kind):
    """(seconds, step) of a diary's first such line after the fault."""
    return next(((at, step) for what, at, step, _ in lines_of(folder, rank) if at > fault_at and what.startswith(kind)), None)


def torchrun(folder):
    with Processes() as processes:
        processes.start(folder / "torchrun.log", VENV / "bin/torchrun", "--standalone", f"--nproc-per-node={MEMBERS}", "--max-restarts=100",
                        ROOT / "benchmarks/peers/elastic_torch.py", DATA, folder, EVERY, **OWN_STORE)
        wait_for("torchrun's workers train", lambda: trains(folder))
        fault_at, before = kill(folder)
        firsts = wait_for_all("torchrun's workers train again", lambda rank: later(folder, rank, fault_at, "first"), range(MEMBERS))
        milliseconds = (max(at for at, _ in firsts) - fault_at) * 1000
        return {"first step": milliseconds, "back": milliseconds, "steps lost": before - min(step for _, step in firsts) + 1}


def torchft(folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Processes() as processes:
        processes.start(folder / "lighthouse.log", VENV / "bin/torchft_lighthouse", "--bind", f"127.0.0.1:{port}", "--min_replicas", "2")
        for group in range(MEMBERS):
            processes.start(folder / f"torchrun-{group}.log", VENV / "bin/torchrun", "--nproc-per-node=1", "--max-restarts=100",
                            "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", ROOT / "benchmarks/peers/elastic_torchft.py", DATA, folder, group,
                            MEMBERS, TORCHFT_LIGHTHOUSE=f"http://127.0.0.1:{port}")
        wait_for("torchft's groups train", lambda: trains(folder) and all(later(folder, rank, 0, f"of-{MEMBERS}") for rank in range(MEMBERS)))
        fault_at, before = kill(folder)
        survivors = [rank for rank in range(MEMBERS) if rank != VICTIM]
        firsts = wait_for_all("torchft's groups go on", lambda rank: later(folder, rank, fault_at, "of-"), survivors)
        backs = wait_for_all("torchft's groups are all there", lambda rank: later(folder, rank, fault_at, f"of-{MEMBERS}"), range(MEMBERS))
        return {"first step": (max(at for at, _ in firsts) - fault_at) * 1000, "back": (max(at for at, _ in backs) - fault_at) * 1000,
                "steps lost": max(0, before - min(step for _, step in firsts) + 1)}


def one_round(name, folder):
    """Milliseconds; nothing where this peer did not go on."""
    folder.mkdir()
    try:
        return {"torchrun": torchrun, "torchft": torchft}[name](folder)
    except TimeoutError as error:
        print(f"recovery: {name}: {error}", file=sys.stderr)
        return {}
