// One job of the mock: what it is, and all that the API says of it, as it stands after so many steps.

import type {
  Decision,
  Job,
  JobEvent,
  Log,
  Requests,
  Member,
  Phase,
  Row,
  Straggler,
  ActionName,
  Allowed,
} from "../../../dashboard/src/api/types.ts";
import { around, noise } from "./random.ts";
import { heatMap, stepTimes, type Slowness, type Times } from "./times.ts";

export interface Story {
  namespace: string;
  name: string;
  phase: Phase;
  members: number;
  servers?: number;
  steps: number;
  step: number;
  model: string;
  strategy?: "AllReduce" | "ParameterServer";
  device?: string;
  slowness?: Slowness;
  computeMs?: number;
  reason?: string;
  message?: string;
  restarts?: number;
  ageSeconds: number;
  seed: number;
}

export const SAMPLES = 2048;

export class MockJob {
  readonly story: Story;
  readonly uid: string;
  readonly times: Times;
  readonly created: number;
  phase: Phase;
  step: number;
  workers: number;
  changed = 0; // the world's version when it last did
  events: JobEvent[] = [];
  forbidden = new Map<ActionName, string>();

  constructor(story: Story, now: number) {
    this.story = story;
    this.uid = `uid-${story.namespace}-${story.name}-${story.seed}`;
    this.phase = story.phase;
    this.step = story.step;
    this.workers = story.members;
    this.created = now - story.ageSeconds * 1000;
    this.times = {
      seed: story.seed,
      members: story.members,
      computeMs: story.computeMs ?? 90,
      slowness: story.slowness ?? { kind: "none" },
      checkpointEvery: 500,
    };
    this.note("Normal", "Created", "the job's pods were made", this.created + 4000);
    if (story.reason) this.note("Warning", story.reason, story.message ?? story.reason, now - 60_000);
  }

  own: "trains" | "silent" | "told" = "trains"; // the last two: a program of its own, which tells nothing, or of its steps
  keeps = true; // its checkpoints
  requests: Requests = {};

  get ended(): boolean {
    return ["Succeeded", "Failed", "Stopped"].includes(this.phase);
  }

  get stepMs(): number {
    const slow = this.slow();
    return this.times.computeMs * 1.25 * (slow ? slow.factor : 1);
  }

  slow(): { rank: number; factor: number; since: number } | null {
    const s = this.times.slowness;
    return s.kind === "fixed" && this.phase === "Running" && this.step >= s.since ? s : null;
  }

  lossAt(step: number): number {
    return 0.35 + 6.5 * Math.exp(-step / (this.story.steps / 6)) + 0.03 * around(this.story.seed, step);
  }

  accuracyAt(step: number): number {
    return 0.93 - 0.8 * Math.exp(-step / (this.story.steps / 5)) + 0.004 * around(this.story.seed, step, 3);
  }

  note(type: string, reason: string, message: string, at: number): void {
    this.events.push({ time: new Date(at).toISOString(), type, reason, object: `trainingjob/${this.story.name}`, message, count: 1 });
  }

  row(now: number): Row {
    const { story } = this;
    const begun = this.step > 0;
    const elapsed = this.ended ? story.ageSeconds : (now - this.created) / 1000;
    const perSecond = this.phase === "Running" ? 1000 / this.stepMs : undefined;
    const slow = this.slow();
    const row: Row = {
      namespace: story.namespace,
      name: story.name,
      uid: this.uid,
      phase: this.phase,
      created: new Date(this.created).toISOString(),
      elapsedSeconds: Math.max(0, elapsed - 20),
      members: this.workers + (story.servers ?? 0),
      ready:
        this.phase === "Running"
          ? this.workers + (story.servers ?? 0)
          : this.phase === "Restarting" || this.phase === "Starting"
            ? Math.floor(this.workers / 2)
            : 0,
      restarts: story.restarts ?? 0,
      stragglers: slow ? 1 : 0,
      model: story.model,
      strategy: story.strategy ?? "AllReduce",
      device: story.device ?? "NVIDIA H100 80GB HBM3",
      suspended: this.phase === "Suspended",
      steps: story.steps,
      step: this.step,
      progress: this.step / story.steps,
    };
    if (story.reason) row.reason = story.reason;
    if (this.phase === "Starting" && story.message) row.warning = `${story.reason}: ${story.message}`;
    if (this.ended) row.finished = new Date(this.created + story.ageSeconds * 900).toISOString();
    if (slow) row.stragglerText = this.straggler(now)!.message!;
    if (begun) {
      row.loss = this.lossAt(this.step);
      row.accuracy = this.accuracyAt(Math.floor(this.step / 500) * 500);
      row.goodput = 0.995 - 0.02 * noise(story.seed, 5) - 0.01 * (story.restarts ?? 0);
      row.epoch = this.step / 2500;
    }
    if (perSecond) {
      row.stepsPerSecond = perSecond * (1 + 0.01 * around(story.seed, this.step));
      row.samplesPerSecond = row.stepsPerSecond * SAMPLES;
      row.etaSeconds = (story.steps - this.step) / perSecond;
    }
    return row;
  }

  memberName(rank: number): string {
    return rank === 0 ? "chief-0" : `worker-${rank - 1}`;
  }

  node(rank: number): string {
    return `gpu-${String(Math.floor(rank / 8) + 1).padStart(2, "0")}`;
  }

  pod(rank: number): string {
    return `${this.story.name}-${this.memberName(rank)}-0`;
  }

  straggler(now: number): Straggler | null {
    const slow = this.slow();
    if (!slow) return null;
    const own = this.times.computeMs * slow.factor;
    const evidence = "its GPU's clock is 1,110 of 1,980 MHz: HwThermalSlowdown, 91 C";
    return {
      kind: "Slow",
      role: "worker",
      index: slow.rank - 1,
      rank: slow.rank,
      host: this.node(slow.rank),
      part: "compute",
      factor: slow.factor,
      cause: "GpuSlowdown",
      since: new Date(now - 840_000).toISOString(),
      action: "Wait",
      message:
        `${this.memberName(slow.rank)} on ${this.node(slow.rank)} takes ${slow.factor.toFixed(2)} times ` +
        `the others' ${this.times.computeMs.toFixed(1)} ms ` +
        `to compute: each step is ${(own - this.times.computeMs).toFixed(1)} ms longer; ${evidence}`,
      evidence,
      why: "another pod costs about 95 s, and the steps that are left win that in 2 min",
    };
  }

  members(): Member[] {
    const times = stepTimes(this.times, this.step);
    const slow = this.slow();
    const onGpu = (this.story.device ?? "NVIDIA").startsWith("NVIDIA");
    const trainers = Array.from({ length: this.workers }, (_, rank): Member => {
      const t = times[rank % times.length]!;
      const hot = slow?.rank === rank;
      const member: Member = {
        role: rank === 0 ? "chief" : "worker",
        index: Math.max(0, rank - 1),
        rank,
        pod: this.pod(rank),
        host: this.node(rank),
        phase: "Training",
        step: this.step,
        inputMs: t.input,
        computeMs: t.compute,
        waitMs: t.wait,
        transferMs: t.transfer,
        updateMs: t.update,
        stepMs: t.step,
        samples: SAMPLES / 64,
      };
      if (onGpu) {
        member.gpu = {
          name: "NVIDIA H100 80GB HBM3",
          index: rank % 8,
          utilization: hot ? 1 : 0.86 + 0.1 * noise(this.story.seed, rank),
          memoryUsedMib: 61_000,
          memoryTotalMib: 81_559,
          temperatureCelsius: hot ? 91 : 62 + Math.round(6 * noise(rank)),
          powerWatts: hot ? 430 : 640,
          powerLimitWatts: 700,
          ...(hot ? { slowdowns: ["HwThermalSlowdown"] } : {}),
          ...(rank === 33 ? { xids: 1, lastXid: 63 } : {}),
        };
      }
      if (this.story.strategy === "ParameterServer")
        member.staleness = { applied: this.step, dropped: rank % 3, mean: 1 + 2 * noise(rank, 9), max: 7, waitSeconds: 12 };
      return member;
    });
    const servers = Array.from({ length: this.story.servers ?? 0 }, (_, index): Member => ({
      role: "ps",
      index,
      rank: -1,
      pod: `${this.story.name}-ps-${index}-0`,
      host: `cpu-0${index + 1}`,
      phase: "Serving",
      server: {
        load: 0.4 + 0.4 * noise(index, 11),
        bytesPerSecond: 8e8,
        queue: index === 1 ? 14 : 2,
        updates: this.step * 16,
        rows: 4_200_000,
        rowBytes: 1.2e9,
      },
    }));
    return [...trainers, ...servers];
  }

  actions(): Partial<Record<ActionName, Allowed>> {
    const rule = (name: ActionName, fits: boolean, why: string): [ActionName, Allowed] => {
      const may = this.forbidden.get(name);
      const bounds = name === "scale" ? { least: 4, most: 80 } : {};
      return [name, may ? { allowed: false, why: may } : fits ? { allowed: true, ...bounds } : { allowed: false, why }];
    };
    const running = this.phase === "Running";
    const why = this.ended ? "it has ended" : `it is ${this.phase}`;
    return Object.fromEntries([
      rule("suspend", !this.ended && this.phase !== "Suspended", why),
      rule("resume", this.phase === "Suspended", "it is not suspended"),
      rule("scale", running && this.story.strategy !== "ParameterServer", running ? "its strategy does not change size" : why),
      rule("checkpoint", running, why),
      rule("replace", running, why),
      rule("delete", true, ""),
    ]);
  }

  hints(): string[] {
    if (this.phase === "Failed") return [`its log: paceline logs ${this.story.name} worker/3 -n ${this.story.namespace}`];
    if (this.story.reason === "Unschedulable") return ["Unschedulable: no node has room for it or suits it: add nodes, or ask for less"];
    return this.phase === "Suspended"
      ? [`it is suspended; to let it go on: paceline resume ${this.story.name} -n ${this.story.namespace}`]
      : [];
  }

  job(version: string, now: number): Job {
    const straggler = this.straggler(now);
    const { story } = this;
    const replicaSpecs: Record<string, object> = {
      chief: { replicas: 1 },
      worker: { replicas: this.workers - 1 },
    };
    if (story.servers) replicaSpecs["ps"] = { replicas: story.servers };
    return {
      version,
      row: this.row(now),
      hints: this.hints(),
      keepsCheckpoints: this.keeps,
      actions: this.actions(),
      object: {
        metadata: { name: story.name, namespace: story.namespace },
        spec: { replicaSpecs, ...(this.own === "trains" ? { training: {} } : {}) },
        status: {
          phase: this.phase,
          requests: this.requests,
          ...(story.reason ? { reason: story.reason, message: story.message } : {}),
          members: this.phase === "Running" ? this.members() : [],
          stragglers: straggler ? [straggler] : [],
          ...(this.phase === "Failed"
            ? {
                fault: {
                  kind: "OutOfMemory",
                  role: "worker",
                  index: 3,
                  pod: this.pod(4),
                  host: this.node(4),
                  step: this.step,
                  cause: "OOMKilled",
                  signal: 9,
                  evidence: [{ kind: "OutOfMemory", detail: "the kernel killed it: 32.0 GiB of 32.0 GiB" }],
                  victims: [{ kind: "LostLink", role: "worker", index: 4 }],
                },
              }
            : {}),
          view: { generation: 3, size: this.workers },
          progress: { testLoss: this.lossAt(this.step) + 0.08 },
          restarts: { total: story.restarts ?? 0 },
        },
      },
    };
  }

  heat(version: string, from: number, to: number, columns: number) {
    const names =
      this.step === 0
        ? []
        : Array.from({ length: this.times.members }, (_, rank) => ({
            name: this.memberName(rank),
            rank,
            node: this.node(rank),
            pod: this.pod(rank),
          }));
    return heatMap(this.times, version, this.step, from, to, columns, names);
  }

  logs(): Log[] {
    const live = this.phase === "Running";
    return this.step === 0
      ? []
      : Array.from({ length: Math.min(this.workers, 64) }, (_, rank) => ({
          pod: this.pod(rank),
          member: this.memberName(rank),
          role: rank === 0 ? "chief" : "worker",
          index: Math.max(0, rank - 1),
          attempt: 0,
          node: this.node(rank),
          containers: rank === 0 ? ["trainer", "sidecar"] : ["trainer"],
          live,
        }));
  }

  next(): Decision[] {
    if (this.ended) return [];
    if (this.phase === "Suspended") return [{ text: "nothing until it is resumed" }];
    const decisions: Decision[] = [{ text: "a checkpoint is due by spec.checkpoint.everySteps", in: 42 }];
    const slow = this.slow();
    if (!slow) return decisions;
    const text = `${this.memberName(slow.rank)} is replaced once its delay has cost more than a successor would; 2 of 3 replacements are left`;
    return [{ text, in: 126 }, ...decisions];
  }
}
