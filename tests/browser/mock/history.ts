// What a job of the mock has behind it: its curves, what happened to it, its log, and how it was written.

import type { Series, TimelineItem } from "../../../dashboard/src/api/types.ts";
import { SAMPLES, type MockJob } from "./job.ts";
import { around } from "./random.ts";

export function seriesOf(job: MockJob, version: string, points: number): Series {
  const series = trainingOf(job, version, points);
  if (job.own === "silent")
    return { version, stepsPerPoint: 1, step: [], seconds: [], loss: [], learningRate: [], stepsPerSecond: [], samplesPerSecond: [] };
  return job.own === "told" ? { ...series, loss: nothing(series), learningRate: nothing(series), evaluations: [] } : series;
}

const nothing = (series: Series): null[] => series.step.map(() => null);

function trainingOf(job: MockJob, version: string, points: number): Series {
  let stepsPerPoint = 1;
  while (job.step / stepsPerPoint > points) stepsPerPoint *= 2;
  const step = Array.from({ length: Math.floor(job.step / stepsPerPoint) + 1 }, (_, i) => i * stepsPerPoint).slice(1);
  const slowSince = job.times.slowness.kind === "fixed" ? job.times.slowness.since : Infinity;
  const factor = job.times.slowness.kind === "fixed" ? job.times.slowness.factor : 1;
  let at = 0;
  let last = 0;
  const seconds = step.map((s) => {
    at += ((s - last) * job.times.computeMs * 1.25 * (s >= slowSince ? factor : 1)) / 1000;
    last = s;
    return at;
  });
  const scale = (0.98 * job.story.ageSeconds) / at; // as the timeline has it
  const total = job.story.steps;
  return {
    version,
    stepsPerPoint,
    step,
    seconds: seconds.map((each) => each * scale),
    loss: step.map((s) => job.lossAt(s)),
    learningRate: step.map((s) => 3e-4 * Math.min(1, s / (total / 20)) * (0.55 + 0.45 * Math.cos((Math.PI * s) / total))),
    stepsPerSecond: step.map((s) => (8 / (s >= slowSince ? factor : 1)) * (1 + 0.03 * around(job.story.seed, s, 5))),
    samplesPerSecond: step.map((s) => ((8 * SAMPLES) / (s >= slowSince ? factor : 1)) * (1 + 0.03 * around(job.story.seed, s, 5))),
    evaluations: step.flatMap((s, i) =>
      i % Math.max(1, Math.floor(step.length / 20)) === 0
        ? [{ step: s + (stepsPerPoint >> 1), loss: job.lossAt(s) + 0.08, accuracy: job.accuracyAt(s), seconds: (seconds[i] ?? 0) * scale }]
        : [],
    ),
  };
}

export function timelineOf(job: MockJob, now: number): TimelineItem[] {
  const elapsed = (now - job.created) / 1000;
  const at = (share: number, item: Omit<TimelineItem, "time" | "seconds">): TimelineItem => ({
    time: new Date(job.created + share * elapsed * 1000).toISOString(),
    seconds: share * elapsed,
    step: Math.floor(share * job.step),
    ...item,
  });
  const items: TimelineItem[] = [
    at(0, { kind: "Phase", phase: "Pending", title: "Pending", text: "it waits for its pods" }),
    at(0.01, { kind: "Phase", phase: "Starting", title: "Starting" }),
    at(0.015, {
      kind: "Preflight",
      title: "The check found no slow member",
      severity: "Info",
      text: `${job.workers} members, 2 rounds`,
    }),
    at(0.02, { kind: "Phase", phase: "Running", title: "Running" }),
    at(0.02, { kind: "View", title: `View 1 of ${job.workers} members`, text: "all members are there" }),
  ];
  if (job.step > 0) {
    items.push(
      at(0.41, {
        kind: "Lost",
        severity: "Error",
        title: "worker-9 stopped answering",
        text: "silent for 3.0 s; its node gpu-02 is not ready",
        members: ["worker-9"],
        step: undefined,
      }),
      at(0.412, {
        kind: "View",
        title: `View 2 of ${job.workers - 1} members`,
        text: "without worker-9; first step after 412 ms, no step lost",
      }),
      at(0.44, { kind: "View", title: `View 3 of ${job.workers} members`, text: "worker-9 has caught up", members: ["worker-9"] }),
    );
    for (let share = 0.05; share < 1; share += 0.05) items.push(at(share, { kind: "Checkpoint", title: "Saved in 1.8 s" }));
    for (let share = 0.04; share < 1; share += 0.06)
      items.push({
        ...at(share, { kind: "Evaluation", title: `Accuracy ${(100 * job.accuracyAt(share * job.step)).toFixed(2)} %` }),
        time: undefined,
      });
  }
  const slow = job.straggler(now);
  if (slow)
    items.push({
      ...at(0.72, {
        kind: "Straggler",
        severity: "Warning",
        title: slow.message!,
        text: `${slow.action}: ${slow.why}`,
        members: [job.memberName(slow.rank)],
      }),
      endSeconds: elapsed,
    });
  if (job.ended || job.phase === "Suspended" || job.phase === "Restarting")
    items.push(
      at(0.97, {
        kind: "Phase",
        phase: job.phase,
        title: job.phase,
        severity: job.phase === "Failed" ? "Error" : "Info",
        ...(job.story.message ? { text: job.story.message } : {}),
      }),
    );
  return items.sort((a, b) => a.seconds! - b.seconds!);
}

export function logLine(job: MockJob, i: number): string {
  const time = new Date(job.created + i * 900).toISOString();
  if (i % 97 === 96) return `${time} [W] the link to worker-9 is slow: 1.2 GB/s, the others' median is 11.8 GB/s`;
  if (i % 211 === 210) return `${time} [E] lost the link to worker-9: connection reset by peer`;
  if (i % 25 === 24) return `${time} [I] checkpoint of step ${i * 4} saved in 1.8 s`;
  const times = `input 2.4 ms compute ${job.times.computeMs.toFixed(1)} ms wait 3.1 ms transfer 11.0 ms`;
  return `${time} [I] step ${i * 4}/${job.story.steps} loss ${job.lossAt(i * 4).toFixed(4)} ${times}`;
}

export function yamlOf(job: MockJob): string {
  const { namespace, name, model, steps } = job.story;
  return `apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata:
  name: ${name}
  namespace: ${namespace}
spec:
  replicaSpecs:
    chief: {replicas: 1}
    worker:
      replicas: ${job.workers - 1}
      minReplicas: 4
      restartPolicy: OnFailure
  stragglers:
    action: Replace   # by a successor that catches up beside
  training:
    model: {type: ${model}}
    globalBatchSize: ${SAMPLES}
    steps: ${steps}
    optimizer: {type: AdamW, learningRate: 3e-4}
  checkpoint:
    everySteps: 500
    location: "/checkpoints/${name}"
`;
}
