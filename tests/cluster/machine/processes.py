"""The processes of a cluster: started with a mark in their environment, by which they and their children are found and ended.

Containers have an environment of their own; they are found by their cgroup. Signals go through a pidfd, after a second look at the mark: a
process id that was used again is never hit.
"""

import os
import pathlib
import select
import signal
import subprocess
import time

MARK = "PACELINE_CLUSTER_PROCESS"
PROC = pathlib.Path("/proc")
KILL_SECONDS = 30
LOG_TAIL_LINES = 15
START_SECONDS = 30


class ProcessError(Exception):
    pass


def start(name, command, mark, log, folder="/"):
    """Starts a process that outlives this one; its output goes to the end of `log`. It is found by its mark when this returns, or has ended."""
    environment = dict(os.environ, **{MARK: str(mark)})
    environment.pop("KUBECONFIG", None)
    with open(log, "ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, cwd=folder,
                                   start_new_session=True)
    process.name = name
    # A new program is told of (its close-on-exec files are closed) before the kernel has noted where its arguments and environment lie.
    wait_until(f"the environment of {name}", START_SECONDS,
               lambda: process.poll() is not None or (is_marked(process.pid, mark) and command_line(process.pid)), lambda: tail(log))
    return process


def tail(log, lines=LOG_TAIL_LINES):
    try:
        text = pathlib.Path(log).read_text(errors="replace")
    except OSError as error:
        return f"  (no log: {error})"
    return "\n".join(f"  {line[:400]}" for line in text.splitlines()[-lines:]) or "  (its log is empty)"


def wait_until(what, seconds, look, on_failure=lambda: ""):
    """Calls `look` until it returns something true, which is returned; it may raise to give up at once."""
    deadline = time.monotonic() + seconds
    pause = 0.02
    while True:
        result = look()
        if result:
            return result
        if time.monotonic() > deadline:
            raise ProcessError(f"{what}: not within {seconds} s\n{on_failure()}".rstrip())
        time.sleep(pause)
        pause = min(pause * 1.3, 0.25)


def environment_of(pid):
    """The environment with which a process began, as a set of NAME=VALUE bytes; empty when it is gone or a zombie."""
    try:
        return set((PROC / str(pid) / "environ").read_bytes().split(b"\0"))
    except OSError:
        return set()


def is_marked(pid, mark):
    return f"{MARK}={mark}".encode() in environment_of(pid)


def marked(mark):
    return [int(entry.name) for entry in PROC.iterdir()
            if entry.name.isdigit() and int(entry.name) != os.getpid() and is_marked(entry.name, mark)]


def command_line(pid):
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def find(mark, command):
    """The marked process that runs exactly this command line, or None."""
    return next((pid for pid in marked(mark) if command_line(pid) == command), None)


def send(pid, number, still_ours):
    """False when the process is gone or not ours (any more)."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not still_ours(pid):
            return False
        signal.pidfd_send_signal(handle, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


def end(pid, number, still_ours, seconds):
    """Sends a signal that ends a process; returns when all of its threads have ended, so that its ports are free. False when it was gone before."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not send(pid, number, still_ours):
            return False
        if not select.select([handle], [], [], seconds)[0]:   # readable when the last thread has ended
            raise ProcessError(f"process {pid} did not end within {seconds} s of signal {int(number)}")
        return True
    finally:
        os.close(handle)


def cgroup_roots():
    """Every hierarchy that the machine has: one, or many where they are of version 1."""
    with open("/proc/self/mountinfo") as mounts:
        fields = [line.split() for line in mounts]
    return [pathlib.Path(line[4]) for line in fields if line[line.index("-") + 1] in ("cgroup", "cgroup2")]


def make_cgroup(name):
    for root in cgroup_roots():
        (root / name).mkdir(parents=True, exist_ok=True)


def cgroup_folders(name):
    """Where a cgroup of this name is."""
    return [folder for folder in (root / name for root in cgroup_roots()) if folder.is_dir()]


def cgroups_below(name):
    """Every cgroup of this name and in it, in every hierarchy, the innermost first. Those that go meanwhile are left out, or still in."""
    return [pathlib.Path(path) for folder in cgroup_folders(name) for path, _, _ in os.walk(folder, topdown=False)]


def in_cgroup(name):
    pids = set()
    for folder in cgroups_below(name):
        try:
            pids.update(int(word) for word in (folder / "cgroup.procs").read_text().split() if word != "0")
        except OSError:
            pass   # removed meanwhile
    return pids


def kill_all(mark, cgroup):
    """Ends every process of a cluster, this one excepted; returns when none is left."""
    def look():
        members = in_cgroup(cgroup)
        for pid in members:
            send(pid, signal.SIGKILL, lambda p: p in in_cgroup(cgroup))
        for pid in marked(mark):
            send(pid, signal.SIGKILL, lambda p: is_marked(p, mark))
        return not members and not marked(mark)
    wait_until("ending the cluster's processes", KILL_SECONDS, look,
               lambda: f"still there: {[(pid, command_line(pid)[:2]) for pid in marked(mark)]}, in cgroups: {sorted(in_cgroup(cgroup))}")


def remove_cgroups(name):
    def look():
        for path in cgroups_below(name):
            try:
                path.rmdir()
            except OSError:
                pass   # busy as long as its last process is being reaped
        return not cgroup_folders(name)
    wait_until("removing the cluster's cgroups", KILL_SECONDS, look, lambda: f"still there: {cgroup_folders(name)}")
