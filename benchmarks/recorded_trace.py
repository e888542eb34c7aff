"""Recordings of runs: what metrics.jsonl has of the members' steps (docs/metrics.md), and a label that says which of them was slow, and from when on.

A recording is a gzipped file of JSON lines. The first one is the label:
  fault     what was done: one of benchmarks/straggler_recovery's
  member    that is slow for it; null: nobody is, or a link is
  link      that is slow for it; null: none is
  fromStep  the first step that may be slow; null: no fault begins
  action, workers, machine, load (the machine's load average of a minute, when the recording ended)
  live      what the run itself found: `alarms`, seconds from the fault to each StragglerDetected (below 0: before it; of a run without a fault they
            count from some moment of it), and `verdict`, the first finding of its status; null: there was none
The others are the run's own, in their order; times are rounded to 1 us, and of rank 0's lines those are kept that are TICK apart.
"""

import bisect
import gzip
import itertools
import json
import statistics

TICK = 0.1
PARTS = ("inputMs", "computeMs", "waitMs", "transferMs", "updateMs", "checkpointMs", "leftOutMs")


def pack(label, metrics):
    """The bytes of a recording."""
    kept, last = [json.dumps({"type": "label"} | label)], None
    for line in metrics.splitlines():
        try:
            record = json.loads(line)
        except ValueError:   # the line that is written at the moment
            continue
        if record["type"] == "memberStep":
            parts = {part: round(record[part], 3) for part in PARTS if record.get(part)}
            kept.append(json.dumps({"type": "memberStep", "member": record["member"], "step": record["step"]} | parts, separators=(",", ":")))
        elif record["type"] == "view":
            kept.append(line)
        elif record["type"] == "step" and (last is None or record["timeSeconds"] >= last + TICK):
            last = record["timeSeconds"]
            kept.append(json.dumps({"type": "step", "step": record["step"], "timeSeconds": round(last, 3)}, separators=(",", ":")))
    return gzip.compress("".join(line + "\n" for line in kept).encode(), mtime=0)


def unpack(data):
    """(label, the run's lines as one text)"""
    first, rest = gzip.decompress(data).decode().split("\n", 1)
    label = json.loads(first)
    if label.pop("type", "") != "label":
        raise ValueError("the first line is no label: a recording is what benchmarks/straggler_recovery --record writes")
    return label, rest


class Clock:
    """When a step was done, in seconds of rank 0's clock. Between two that are recorded steps take as long as each other."""
    def __init__(self, metrics):
        known = [json.loads(line) for line in metrics.splitlines() if '"type":"step"' in line]
        self.steps, self.seconds = [each["step"] for each in known], [each["timeSeconds"] for each in known]

    def at(self, step):
        right = bisect.bisect_left(self.steps, step)
        if right in (0, len(self.steps)):
            return self.seconds[min(right, len(self.steps) - 1)]
        left = right - 1
        share = (step - self.steps[left]) / (self.steps[right] - self.steps[left])
        return self.seconds[left] + share * (self.seconds[right] - self.seconds[left])


def excess(label, metrics):
    """The slow member's own time (input, compute, update; its mean over the fault) over the median of the others'. None: no member is slow."""
    own = {}
    for step in (json.loads(line) for line in metrics.splitlines() if '"type":"memberStep"' in line):
        if label["member"] and step["step"] >= label["fromStep"]:
            own.setdefault(step["member"], []).append(sum(step.get(part, 0) for part in ("inputMs", "computeMs", "updateMs")))
    means = {member: statistics.mean(times) for member, times in own.items()}
    return round(means.pop(label["member"]) / statistics.median(means.values()), 2) if means else None


def judge(label, calls, clock):
    """What a rule's calls ({step, member, finding, slow}, by step) come to: the first moment of the fault at which the slow member is called so and nobody
    else (steps, seconds; null: never), false alarms, of which there is one at most for each member until it is called so no more, and findings of
    other kinds."""
    slow, result = set(), {"steps": None, "seconds": None, "falseAlarms": 0, "others": {}}
    for step, group in itertools.groupby(calls, lambda call: call["step"]):
        at_fault = label["fromStep"] is not None and step >= label["fromStep"]
        for call in group:
            if call["finding"] not in ("", "Slow"):
                if call["slow"]:
                    result["others"][call["finding"]] = result["others"].get(call["finding"], 0) + 1
            elif not call["slow"]:
                slow.discard(call["member"])
            else:
                slow.add(call["member"])
                result["falseAlarms"] += not (at_fault and call["member"] == label["member"])
        if at_fault and result["steps"] is None and slow == {label["member"]}:
            result |= {"steps": step - label["fromStep"] + 1, "seconds": round(clock.at(step) - clock.at(label["fromStep"] - 1), 3)}
    return result
