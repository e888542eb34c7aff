"""What benchmarks/gpu_training asks for and makes of what it measures: jobs, rates, limits, ratios, judgements, and the lines that it prints. Pure."""

import math

import spread

# layers, heads, width of GPT-2's sizes, with the learning rates of Brown et al. 2020 (table 2.1); 50257 tokens, filled up to a multiple of 128 on both
# sides.
SIZES = {
    "124m": dict(layers=12, heads=12, width=768, block=1024, vocabulary=50304, learningRate=0.0006),
    "350m": dict(layers=24, heads=16, width=1024, block=1024, vocabulary=50304, learningRate=0.0003),
    "tiny": dict(layers=1, heads=2, width=16, block=16, vocabulary=256, learningRate=0.0006),
}
# Of dense bf16 products by datasheet (FLOP/s); what large products reach of it, and what copies reach (bytes/s), by measurements of an H200: products
# 80 % of the datasheet's rate, copies 90 % of the memory's.
GPUS = {
    "H200": dict(peak=989e12, products=790e12, copies=4.3e12),
    "H100": dict(peak=989e12, products=790e12, copies=3.0e12),
    "A100": dict(peak=312e12, products=250e12, copies=1.8e12),
}
TARGETS = {"compile": 1.0, "eager": 1.3, "mfu": 0.5, "loss": 0.005, "stallMs": 50, "startSeconds": 3}
OPTIMIZER = dict(beta1=0.9, beta2=0.95, epsilon=1e-8, weightDecay=0.1, clipNorm=1.0)
SEED = 1


def gpu_limits(name):
    """Of a GPU by its name; None of one that is not in the table."""
    return next((limits for known, limits in GPUS.items() if known in name), None)


def parameters(size):
    """Weights of the model: embeddings (the output's are the tokens'), of each block two norms, four layers with biases, and the last norm."""
    width = size["width"]
    attention, mlp = 4 * width * width + 4 * width, 8 * width * width + 5 * width
    block = 4 * width + attention + mlp
    return (size["vocabulary"] + size["block"]) * width + size["layers"] * block + 2 * width


def flops_per_token(size):
    """Forward and backward, as is customary (PaLM, appendix B): 6 for each weight that is in a product, and attention, not halved for being causal."""
    return 6 * (parameters(size) - size["block"] * size["width"]) + 12 * size["layers"] * size["width"] * size["block"]


def learning_rate(size, step, steps, warmup, final_fraction=0.1):
    """The rate of step `step`, from 0, with the schedule of job()."""
    if step < warmup:
        return size["learningRate"] * (step + 1) / warmup
    last = steps - 1 - warmup
    t = (step - warmup) / last if last > 0 else 0
    return size["learningRate"] * (final_fraction + (1 - final_fraction) * 0.5 * (1 + math.cos(math.pi * t)))


def job(size, tokens, batch, steps, precision="BF16", workers=1, micro=0, warmup=None, checkpoint_every=None, frozen=False):
    """A TrainingJob as text. `frozen`: weights that stay what they were made as (a rate that rounding takes away), to be handed to others."""
    optimizer = ", ".join(f"{field}: {value!r}" for field, value in dict(OPTIMIZER, learningRate=size["learningRate"]).items())
    schedule = "" if warmup is None else f", schedule: {{type: Cosine, warmupSteps: {warmup}, finalFraction: 0.1}}"
    shape = f"layers: {size['layers']}, heads: {size['heads']}, width: {size['width']}"
    update = "{type: SGD, learningRate: 1e-30}" if frozen else f"{{type: AdamW, {optimizer}{schedule}}}"
    return f"""apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: gpt}}
spec:
  replicaSpecs: {{worker: {{replicas: {workers}}}}}
  training:
    model:
      {{type: gpt, {shape}, blockSize: {size["block"]}, vocabularySize: {size["vocabulary"]}}}
    data: {{format: tokens, tokenType: uint16, train: {{inputs: {tokens}}}}}
    optimizer: {update}
    precision: {precision}
    globalBatchSize: {batch}
    microBatchSize: {micro}
    steps: {steps}
    seed: {SEED}
""" + (f"  checkpoint: {{everySteps: {checkpoint_every}, keep: 1}}\n" if checkpoint_every else "")


def rate_of(records, tokens_per_step, skip):
    """Tokens per second from a run's metrics, without its first `skip` steps."""
    steps = [record for record in records if record["type"] == "step"]
    if len(steps) < skip + 2:
        raise ValueError(f"{len(steps)} steps are too few to leave out {skip}")
    return (steps[-1]["step"] - steps[skip]["step"]) * tokens_per_step / (steps[-1]["timeSeconds"] - steps[skip]["timeSeconds"])


def losses_of(records):
    return [record["loss"] for record in records if record["type"] == "step"]


def parts_of(records, skip):
    """Mean milliseconds of each part of a member's step, over all members, without the first `skip` steps."""
    rows = [record for record in records if record["type"] == "memberStep" and record["step"] > skip]
    return {part: sum(row[part + "Ms"] for row in rows) / len(rows) for part in ("input", "compute", "wait", "transfer", "update", "step")}


def stalls_of(records, saved, window):
    """The median step's milliseconds, and by how much the `window` steps behind each checkpoint's took longer than so many of them. Nothing that holds
    the training up is left out: the copy, what waits for it on the GPU, and what the writer takes of the machine."""
    times = {record["step"]: record["timeSeconds"] * 1e3 for record in records if record["type"] == "step"}
    took = sorted(times[step] - times[step - 1] for step in times if step - 1 in times and step > 5)
    median = took[len(took) // 2]
    return median, [times[step + window] - times[step] - window * median for step in saved]


def parity(ours, theirs):
    """Losses of two trainings, step by step, from the same weights on the same data."""
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} losses beside {len(theirs)}")
    differences = [mine / other - 1 for mine, other in zip(ours, theirs)]
    last = min(10, len(ours))
    return dict(steps=len(ours), first=[ours[0], theirs[0]], last=[ours[-1], theirs[-1]], difference=differences[-1],
                differenceOfLastTen=sum(ours[-last:]) / sum(theirs[-last:]) - 1, largestDifference=max(map(abs, differences)), ours=ours, theirs=theirs)


def side(rates, batch, size, limits, peak_megabytes=None):
    """What one side did in all rounds."""
    told = dict(batch=batch, tokensPerSecond=spread.spread(rates), rounds=rates)
    if limits:
        told["mfu"] = spread.spread([rate * flops_per_token(size) / limits["peak"] for rate in rates])
    if peak_megabytes is not None:
        told["peakMegabytes"] = peak_megabytes
    return told


def ratios(sides):
    """Of ours to each peer that was measured, round by round."""
    mine = sides["paceline"]["rounds"]
    return {name: spread.spread(spread.ratios(mine, other["rounds"])) for name, other in sides.items() if name != "paceline"}


def with_limits(kernels, limits):
    """The kernels of benchmarks/gpu_kernels, each with the least time that it could take (microseconds), and which share of its time that is."""
    rows = []
    for kernel in kernels:
        least = (kernel["bytes"] / limits["copies"] + kernel["operations"] / limits["products"]) * 1e6
        rows.append(dict(kernel, limitMicroseconds=least, ofLimit=least / kernel["microseconds"][1]))
    return rows


def kernel_lines(rows):
    lines = [f"{'':36} {'median us':>10} {'limit us':>10} {'of limit':>9}"]
    return lines + [f"{row['name']:36} {row['microseconds'][1]:10.1f} {row['limitMicroseconds']:10.1f} {100 * row['ofLimit']:8.0f}%" for row in rows]


def judged(value, target, least=True):
    return f"target {target:g}: {'met' if (value >= target if least else value <= target) else 'MISSED'}"


def case_lines(name, case):
    """What is printed of a case: its sides, ratios and losses."""
    lines = [f"gpt {name}: {case['parameters'] / 1e6:.1f} million parameters, {case['flopsPerToken'] / 1e9:.3f} GFLOP per token; min/median/max of rounds"]
    for key, told in case["sides"].items():
        line = f"  {key:10} batch {told['batch']:3}  {spread.text(told['tokensPerSecond'], 0)} tokens/s"
        if "mfu" in told:
            line += f"  MFU {100 * told['mfu']['median']:.1f} %"
            line += f" ({judged(told['mfu']['median'], TARGETS['mfu'])})" if key == "paceline" else ""
        if told.get("peakMegabytes") is not None:
            line += f"  {told['peakMegabytes']:,.0f} MB"
        lines.append(line)
    for key, ratio in case.get("ratios", {}).items():
        lines.append(f"  of {key:7} {spread.text(ratio)}  {judged(ratio['median'], TARGETS[key])}")
    if "parity" in case:
        told, last = case["parity"], case["parity"]["differenceOfLastTen"]
        lines.append(f"  loss after {told['steps']} steps {told['last'][0]:.4f}, PyTorch's {told['last'][1]:.4f}: {100 * told['difference']:+.2f} %,"
                     f" of the last ten {100 * last:+.2f} %  {judged(abs(last), TARGETS['loss'], least=False)}")
    return lines


def run_lines(report):
    """Of start-up, checkpoints and members that share a GPU."""
    lines = []
    if report.get("startSeconds"):
        starts = spread.spread(report["startSeconds"])
        lines.append(f"start to first step  {spread.text(starts)} s  {judged(starts['median'], TARGETS['startSeconds'], least=False)}")
    if report.get("checkpoint"):
        stalls = spread.spread(report["checkpoint"]["stallMs"])
        lines.append(f"stall by a checkpoint of {report['checkpoint']['bytes'] / 1e6:,.0f} MB  {spread.text(stalls, 1)} ms"
                     f" beside steps of {report['checkpoint']['stepMs']:.1f} ms  {judged(stalls['median'], TARGETS['stallMs'], least=False)}")
    for row in report.get("exchange", []):
        parts = row["partsMs"]
        lines.append(f"{row['members']} member{'s' if row['members'] > 1 else ' '} on one GPU  {row['tokensPerSecond']:,.0f} tokens/s; ms of a step: "
                     + ", ".join(f"{part} {value:.2f}" for part, value in parts.items()))
    return lines + [f"not measured: {what}" for what in report.get("notMeasured", [])]
