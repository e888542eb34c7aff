"""The folder of all clusters of this machine, and each one's lock: who brings a cluster up or takes it down holds it."""

import contextlib
import fcntl
import json
import os
import pathlib
import signal
import time

from . import layout as layouts
from . import network, processes

LOCK_SECONDS = 90


class StoreError(Exception):
    pass


def root():
    chosen = pathlib.Path(os.environ.get("PACELINE_CLUSTERS") or "/var/tmp/paceline-clusters").resolve()
    if any(chosen.is_relative_to(private) for private in network.PRIVATE):
        raise StoreError(f"PACELINE_CLUSTERS={chosen}: nodes have their own {', '.join(network.PRIVATE)}; choose another place")
    return chosen


def folder(name):
    return root() / layouts.check_name(name)


def names():
    return sorted(path.name for path in root().glob("*") if (path / "cluster.json").exists())


@contextlib.contextmanager
def locked(name, interrupt_holder=False):
    """Holds the lock of cluster `name` (or, as "", that of the choice of subnets). The file goes away with the lock."""
    path = root() / f"{name}.lock"
    deadline, interrupted = time.monotonic() + LOCK_SECONDS, False
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock = open(path, "a+")
        except FileNotFoundError:
            continue   # the last cluster's end took the folder away between the two lines
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                break
            lock.close()   # its last holder removed it meanwhile
            continue
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip()
            lock.close()
            if interrupt_holder and holder.isdigit() and not interrupted:
                interrupted = processes.send(int(holder), signal.SIGTERM, lambda pid: True)
            if time.monotonic() > deadline:
                raise StoreError(f"cluster {name}: process {holder or '?'} has been bringing it up or down for {LOCK_SECONDS} s") from None
            time.sleep(0.05)
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.close()
        with contextlib.suppress(OSError):
            root().rmdir()   # only when this was the last one


def load(name):
    """The layout and what else is known of a cluster, or (None, {})."""
    try:
        value = json.loads((folder(name) / "cluster.json").read_text())
    except (OSError, json.JSONDecodeError):
        return None, {}
    return layouts.Layout.from_json(folder(name), value), value


def save(layout, **more):
    path = layout.folder / "cluster.json"
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({**layout.to_json(), **more}) + "\n")
    partial.rename(path)


def claim(name, node_count, networks_in_use):
    """Chooses a free subnet and writes the cluster's folder, so that no other cluster takes the same."""
    with locked(""):
        taken = list(networks_in_use())
        for other in names():
            taken += [layout.subnet for layout in (load(other)[0],) if layout]
        layout = layouts.Layout(name, folder(name), layouts.choose_subnet(taken), node_count)
        layout.folder.mkdir(mode=0o711)
        save(layout, ready=False)
        return layout
