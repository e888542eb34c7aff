// All jobs of the mock, and how they go on.

import { MockJob, type Story } from "./job.ts";
import { noise, pick } from "./random.ts";

export const HEADLINE = { namespace: "research", name: "gpt-medium-pretrain" };
export const ROTATING = { namespace: "vision", name: "resnet50-sweep-07" };
export const HICCUP = { namespace: "research", name: "tokenizer-ablation" };
export const SERVERS = { namespace: "ads", name: "wide-deep-clicks" };
export const FAILED = { namespace: "vision", name: "segmentation-v2" };
export const SUSPENDED = { namespace: "research", name: "lr-sweep-03" };
export const STARTING = { namespace: "ads", name: "ranking-nightly" };

const STORIES: Omit<Story, "seed">[] = [
  {
    ...HEADLINE,
    phase: "Running",
    members: 64,
    steps: 40_000,
    step: 24_816,
    model: "gpt",
    ageSeconds: 9100,
    slowness: { kind: "fixed", rank: 37, factor: 1.92, since: 17_800 },
  },
  {
    ...ROTATING,
    phase: "Running",
    members: 32,
    steps: 30_000,
    step: 12_040,
    model: "cnn",
    ageSeconds: 3300,
    slowness: { kind: "rotating", every: 192, factor: 1.7 },
  },
  {
    ...HICCUP,
    phase: "Running",
    members: 64,
    steps: 20_000,
    step: 16_430,
    model: "gpt",
    ageSeconds: 5200,
    slowness: { kind: "hiccup", rank: 12, step: 9216, steps: 64, factor: 5 },
  },
  {
    ...SERVERS,
    phase: "Running",
    members: 16,
    servers: 4,
    steps: 200_000,
    step: 61_200,
    model: "wide-and-deep",
    strategy: "ParameterServer",
    device: "processors",
    ageSeconds: 6900,
  },
  {
    ...FAILED,
    phase: "Failed",
    members: 16,
    steps: 12_000,
    step: 3_411,
    model: "cnn",
    ageSeconds: 14_000,
    reason: "MemberOutOfMemory",
    restarts: 3,
    message:
      "worker-3 (pod segmentation-v2-worker-3-0) ran out of memory at step 3411: raise resources.limits.memory, or use a smaller microBatchSize" +
      "\nlast lines of pod segmentation-v2-worker-3-0's log:\nstep 3410 loss 1.8012\nstep 3411 loss 1.7990",
  },
  {
    ...SUSPENDED,
    phase: "Suspended",
    members: 8,
    steps: 10_000,
    step: 4_100,
    model: "gpt",
    ageSeconds: 90_000,
    reason: "Suspended",
    message: "it is suspended by its spec",
  },
  {
    ...STARTING,
    phase: "Starting",
    members: 16,
    steps: 50_000,
    step: 0,
    model: "wide-and-deep",
    ageSeconds: 240,
    reason: "Unschedulable",
    message: "worker-6 (pod ranking-nightly-worker-6-0) does not start: 0/8 nodes are available: 8 Insufficient nvidia.com/gpu",
  },
  {
    namespace: "vision",
    name: "vit-small-224",
    phase: "Restarting",
    members: 16,
    steps: 25_000,
    step: 8_000,
    model: "cnn",
    ageSeconds: 8000,
    reason: "NodeLost",
    restarts: 2,
    message: "the node gpu-07 does not answer any more",
  },
  {
    namespace: "research",
    name: "gpt-small-baseline",
    phase: "Succeeded",
    members: 32,
    steps: 20_000,
    step: 20_000,
    model: "gpt",
    ageSeconds: 50_000,
  },
  {
    namespace: "research",
    name: "gpt-small-wider",
    phase: "Succeeded",
    members: 32,
    steps: 20_000,
    step: 20_000,
    model: "gpt",
    ageSeconds: 40_000,
    computeMs: 110,
  },
  {
    namespace: "ads",
    name: "ctr-daily",
    phase: "Succeeded",
    members: 16,
    steps: 8_000,
    step: 8_000,
    model: "wide-and-deep",
    ageSeconds: 86_000,
  },
  {
    namespace: "vision",
    name: "mnist-smoke",
    phase: "Stopped",
    members: 2,
    steps: 500,
    step: 310,
    model: "mlp",
    device: "processors",
    ageSeconds: 170_000,
    reason: "Stopped",
  },
  { namespace: "research", name: "rlhf-reward", phase: "Running", members: 24, steps: 15_000, step: 1_260, model: "gpt", ageSeconds: 600 },
  { namespace: "research", name: "long-context-8k", phase: "Starting", members: 64, steps: 60_000, step: 0, model: "gpt", ageSeconds: 35 },
];

const NAMES = ["bert", "gpt", "resnet", "vit", "ctr", "ranker", "retriever", "asr", "tts", "detector"];
export class World {
  readonly jobs = new Map<string, MockJob>(); // by "namespace/name"
  readonly removed: { uid: string; version: number }[] = [];
  readonly past = new Map<string, { job: MockJob; deleted: string }>(); // what the history has, by "namespace/name@uid"
  leftOut: string[] = [];
  version = 1;
  readonly now: () => number;

  constructor(now: () => number = Date.now) {
    this.now = now;
  }

  add(story: Story): MockJob {
    const job = new MockJob(story, this.now());
    job.changed = ++this.version;
    this.jobs.set(`${story.namespace}/${story.name}`, job);
    return job;
  }

  remove(key: string): void {
    const job = this.jobs.get(key);
    if (!job) return;
    this.jobs.delete(key);
    this.past.set(`${key}@${job.uid}`, { job, deleted: new Date(this.now()).toISOString() });
    this.removed.push({ uid: job.uid, version: ++this.version });
  }

  touch(job: MockJob): void {
    job.changed = ++this.version;
  }

  // All that run train for so many seconds.
  advance(seconds: number): void {
    for (const job of this.jobs.values()) {
      if (job.phase !== "Running") continue;
      job.step = Math.min(job.story.steps, job.step + Math.max(1, Math.round((seconds * 1000) / job.stepMs)));
      if (job.step === job.story.steps) job.phase = "Succeeded";
      this.touch(job);
    }
  }
}

export function storyWorld(now: () => number = Date.now): World {
  const world = new World(now);
  STORIES.forEach((story, index) => world.add({ ...story, seed: index + 1 }));
  return world;
}

// A thousand jobs of 64 members each, all of which train.
export function bigWorld(count = 1000): World {
  const world = new World();
  for (let i = 0; i < count; ++i) {
    const slow = noise(i, 77) < 0.03;
    world.add({
      namespace: `team-${i % 12}`,
      name: `${pick(NAMES, i)}-${String(i).padStart(4, "0")}`,
      phase: "Running",
      members: 64,
      steps: 1_000_000,
      step: 1000 + Math.floor(noise(i, 3) * 900_000),
      model: pick(["gpt", "cnn", "mlp"], i, 4),
      ageSeconds: 600 + Math.floor(noise(i, 5) * 90_000),
      seed: i + 100,
      computeMs: 40 + 100 * noise(i, 6),
      ...(slow ? { slowness: { kind: "fixed" as const, rank: 3, factor: 1.6, since: 0 } } : {}),
    });
  }
  return world;
}
