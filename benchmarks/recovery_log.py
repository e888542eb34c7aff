"""What members' logs say of a change of a ring: when those that are left noticed, were in the next view, and had applied its first step. Pure."""

import datetime
import re

STAMP = re.compile(r"^(\S+Z) \S+\s+(\S+): (.*)$")


def lines_of(log):
    """(seconds since 1970, text) of each line that has a time, to the millisecond."""
    for line in log.splitlines():
        if found := STAMP.match(line):
            yield datetime.datetime.fromisoformat(found[1].replace("Z", "+00:00")).timestamp(), found[3]


def stages(lines, fault_at):
    """Milliseconds from the fault to the latest of them: in the next view, its first step; and to the first step of the last view. `noticed` is the
    first's. Nothing: no step was taken since."""
    later = sorted((at, text) for at, text in lines if at >= fault_at - 0.001)
    views = sorted({int(found[1]) for _, text in later if (found := re.match(r"view (\d+): rank", text))})
    latest = lambda wanted: max(((at - fault_at) * 1000 for at, text in later if re.match(wanted, text)), default=None)
    steps = [view for view in views if latest(rf"step \d+ is the first of view {view},")]
    if not steps:
        return None
    return {"noticed": min(((at - fault_at) * 1000 for at, text in later if "is abandoned" in text), default=None),
            "next view": latest(rf"view {steps[0]}: rank"), "first step": latest(rf"step \d+ is the first of view {steps[0]},"),
            "back": latest(rf"step \d+ is the first of view {steps[-1]},") if len(steps) > 1 else None}
