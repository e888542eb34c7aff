"""What chaos on this machine (scripts/chaos) and on a cluster (tests/cluster/chaos_case.py) share: the training, and what must hold in the end."""

import json
import math
import pathlib
import re
import subprocess
import tempfile

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/data/digits.csv.gz"
RUN_SECONDS = 120
# By how much models may differ, of their size: rounding alone makes 1e-7, the last step alone 5e-5. (A network with a hidden layer would be apart by as
# much from rounding, where it tips a ReLU.)
MOST_DISTANCE = 1e-6
VIEW = re.compile(r"view (\d+): rank (\d+) of (\d+), from step (\d+)")
FIRST = re.compile(r"step (\d+) is the first of view (\d+)")
ABANDONED = re.compile(r"step (\d+) is abandoned")
RESUMED = re.compile(r"resumes from |nothing to resume from")


class Broken(Exception):
    pass


def training(steps, batch, inputs="data/digits.csv.gz"):
    return {"model": {"type": "mlp", "hidden": [], "classes": 10},
            "data": {"format": "csv", "train": {"inputs": str(inputs)}, "testFraction": 0.2, "normalize": {"scale": 0.0625}},
            "optimizer": {"type": "SGD", "learningRate": 0.01, "momentum": 0.9},
            "globalBatchSize": batch, "steps": steps, "evaluation": {"everySteps": 100_000}}


def job(workers, most, trains, **spec):
    """A ring of a chief and some workers, as an object."""
    return {"apiVersion": "paceline.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "chaos"}, "spec": {
        "replicaSpecs": {"chief": {"restartPolicy": "OnFailure"},
                         "worker": {"replicas": workers, "minReplicas": 1, "maxReplicas": most, "restartPolicy": "OnFailure"}},
        "training": trains, "checkpoint": {"everySteps": 1000}, "runPolicy": {"backoffLimit": 1000}, **spec}}


def undisturbed(paceline, made):
    """The weights after a run of this job on this machine."""
    with tempfile.TemporaryDirectory(prefix="paceline-chaos-reference-") as folder:
        path = pathlib.Path(folder) / "job.json"
        path.write_text(json.dumps(made))
        run = subprocess.run([paceline, "--state-dir", folder, "run", path, "--output", "json"], capture_output=True, text=True, timeout=RUN_SECONDS)
        if run.returncode != 0:
            raise Broken(f"an undisturbed run ends with {run.returncode}: {run.stderr.strip()}")
        return weights_of(pathlib.Path(json.loads(run.stdout.splitlines()[-1])["model"]))


def weights_of(model):
    """All numbers of a safetensors file, in the order of their names."""
    data = model.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    values = []
    for name in sorted(header):
        begin, end = header[name]["data_offsets"]
        values.extend(memoryview(data[8 + size + begin:8 + size + end]).cast("f"))
    return values


def distance(ours, theirs):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(ours, theirs, strict=True)) / sum(b * b for b in theirs))


def check_model(ours, theirs):
    """How far apart they are."""
    apart = distance(ours, theirs)
    if not apart <= MOST_DISTANCE:
        raise Broken(f"its model is {apart:.2g} from that of a run that nobody disturbs; allowed: {MOST_DISTANCE:g}")
    return apart


def check_told_steps(records):
    """Each step is told once, in order, and time does not go back."""
    for field, before in (("step", lambda a, b: a < b), ("timeSeconds", lambda a, b: a <= b)):
        for one, next_one in zip(records, records[1:]):
            if not before(one[field], next_one[field]):
                raise Broken(f"{field} {next_one[field]} is told behind {one[field]}")


def check_told_views(views, begun, most):
    """Generations rise in each of so many attempts, and a view has each member once."""
    seen = 1
    for one, next_one in zip(views, views[1:]):
        if one["generation"] >= next_one["generation"]:
            seen += 1
            if next_one["generation"] != 1 or seen > begun:
                raise Broken(f"view {next_one['generation']} follows view {one['generation']}")
    for view in views:
        if len(set(view["members"])) != len(view["members"]) or not 1 <= len(view["members"]) <= most:
            raise Broken(f"view {view['generation']} is of {view['members']}")


class Entry:
    """A member's coming into a view, as its log has it."""

    def __init__(self, pod, found, resumed):
        self.pod, self.resumed = pod, resumed
        self.generation, self.rank, self.size, self.step = map(int, found.groups())

    def __str__(self):
        return f"{self.pod} is rank {self.rank} of {self.size} in view {self.generation}, from step {self.step}"


def check_log(pod, text):
    """The views of one member: generations rise, no step that it applied is taken again, and the first step of a view is the next one."""
    entries, applied, resumed = [], 0, False
    for line in text.splitlines():
        resumed = resumed or bool(RESUMED.search(line))
        if found := VIEW.search(line):
            entry = Entry(pod, found, resumed)
            if entries and entry.generation <= entries[-1].generation:
                raise Broken(f"{entry}, after view {entries[-1].generation}")
            if entry.step < applied:
                raise Broken(f"{entry}, though it has applied {applied}")
            entries.append(entry)
            applied, resumed = entry.step, False
        elif found := FIRST.search(line):
            step, generation = map(int, found.groups())
            if not entries or generation != entries[-1].generation or step != entries[-1].step + 1:
                raise Broken(f"{pod} begins view {generation} with step {step}; {entries[-1] if entries else 'it was in none'}")
            applied = step
        elif found := ABANDONED.search(line):
            if int(found[1]) < applied:
                raise Broken(f"{pod} abandons step {found[1]}, and has applied {applied}")
            applied = int(found[1])
    return entries


def check_logs(logs, may_part):
    """All members' logs of one attempt, by pod: what check_log says, and each generation has one membership and one first step, not before that of
    the view before it unless nobody was left who held the state. `may_part`: two controllers may each have formed a view of one number."""
    entries = [entry for pod, text in logs.items() for entry in check_log(pod, text)]
    views, held, last = {}, set(), 0
    for entry in sorted(entries, key=lambda each: (each.generation, each.size, each.step, each.rank)):
        views.setdefault(entry.generation, {}).setdefault((entry.size, entry.step), []).append(entry)
    for generation, memberships in views.items():
        if len(memberships) > 1 and not may_part:
            raise Broken(f"view {generation} has two memberships: " + "; ".join(str(entry) for each in memberships.values() for entry in each))
        for (size, step), members in memberships.items():
            if not may_part and (len({each.rank for each in members}) != len(members) or max(each.rank for each in members) >= size):
                raise Broken(f"ranks of view {generation}: " + "; ".join(map(str, members)))
            if step < last and not may_part and (any(each.pod in held for each in members) or not any(each.resumed for each in members)):
                raise Broken(f"view {generation} begins behind step {step}, one before it behind {last}")
            last = max(last, step) if may_part else step
        held.update(each.pod for members in memberships.values() for each in members)
    return len(views)
