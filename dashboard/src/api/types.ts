// The JSON of /api/v1. A field that is absent is not known; it is never 0 or "" for that.

export type Phase = "Pending" | "Starting" | "Running" | "Suspended" | "Restarting" | "Succeeded" | "Failed" | "Stopped" | "Unknown";

export interface Session {
  version: string;
  place: "Local" | "Cluster";
  cluster?: string;
  user?: string;
  namespaces?: string[] | null;
  history?: { kept: boolean; why?: string }; // of deleted jobs; absent: none is kept
}

export interface Row {
  namespace: string;
  name: string;
  uid: string;
  phase: Phase;
  reason?: string;
  created?: string;
  finished?: string;
  elapsedSeconds?: number;
  step?: number;
  steps?: number;
  epoch?: number;
  epochs?: number;
  progress?: number;
  etaSeconds?: number;
  samplesPerSecond?: number;
  stepsPerSecond?: number;
  loss?: number;
  accuracy?: number;
  goodput?: number;
  ready?: number;
  members?: number;
  restarts?: number;
  stragglers?: number;
  stragglerText?: string;
  warning?: string; // what `paceline get` says beside its phase
  model?: string;
  strategy?: string;
  device?: string;
  suspended?: boolean;
  deleted?: string; // when; the history alone has it
}

export interface JobList {
  version: string;
  jobs: Row[];
  leftOut?: string[];
}

export interface PastList {
  jobs: Row[];
  more: boolean; // those that were deleted last are told
}

export const ACTIONS = ["suspend", "resume", "scale", "checkpoint", "replace", "delete"] as const;
export type ActionName = (typeof ACTIONS)[number];

export interface Allowed {
  allowed: boolean;
  why?: string;
  least?: number; // of scale: how many workers there may be
  most?: number;
}

export interface Gpu {
  name?: string;
  index?: number;
  utilization?: number;
  memoryUsedMib?: number;
  memoryTotalMib?: number;
  smClockMhz?: number;
  mostSmClockMhz?: number;
  temperatureCelsius?: number;
  powerWatts?: number;
  powerLimitWatts?: number;
  slowdowns?: string[];
  xids?: number;
  lastXid?: number;
}

export interface Server {
  load?: number;
  bytesPerSecond?: number;
  queue?: number;
  updates?: number;
  rows?: number;
  rowBytes?: number;
}

export interface Staleness {
  applied?: number;
  dropped?: number;
  mean?: number;
  max?: number;
  waitSeconds?: number;
}

// status.members[] of a TrainingJob: docs/trainingjob.md and base/telemetry.h.
export interface Member {
  role: string;
  index: number;
  rank: number;
  pod?: string;
  host?: string;
  pid?: number;
  phase?: string;
  step?: number;
  inputMs?: number;
  computeMs?: number;
  waitMs?: number;
  transferMs?: number;
  updateMs?: number;
  stepMs?: number;
  bytesSent?: number;
  samples?: number;
  server?: Server;
  staleness?: Staleness;
  gpu?: Gpu;
}

export interface Straggler {
  kind?: string;
  role?: string;
  index: number;
  rank: number;
  host?: string;
  part?: string;
  factor?: number;
  cause?: string;
  evidence?: string;
  since?: string;
  message?: string;
  action: string;
  why?: string;
}

export interface Observation {
  kind?: string;
  detail?: string;
}

export interface Fault {
  kind?: string;
  role?: string;
  index: number;
  pod?: string;
  host?: string;
  step?: number;
  cause?: string;
  exitCode?: number;
  signal?: number;
  evidence?: Observation[];
  victims?: (Observation & { role?: string; index: number; same?: boolean })[];
}

export interface Progress {
  testLoss?: number;
  testAccuracy?: number;
  testAuc?: number;
  epoch?: number;
}

export interface Status {
  phase?: string;
  startTime?: string; // of the newest start, be it a resumption
  reason?: string;
  message?: string;
  conditions?: { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }[];
  members?: Member[];
  stragglers?: Straggler[];
  requests?: Requests;
  fault?: Fault;
  view?: {
    generation?: number;
    size?: number;
    change?: { message?: string; came?: string[]; left?: string[] };
    rebalance?: { message?: string };
  };
  progress?: Progress;
  run?: Progress & { members?: Member[] }; // of a run of this machine: what its own process knows better
  restarts?: { total?: number };
  lastCheckpoint?: string;
  model?: string;
}

// What somebody asked of the job, and what came of it.
export interface Request {
  text?: string;
  at?: string;
  outcome: "UnderWay" | "Done" | "Refused" | "Failed";
  message?: string;
}
export interface Requests {
  checkpoint?: Request;
  replace?: Request;
}

export interface Role {
  replicas?: number;
}

export interface TrainingJob {
  metadata?: { name?: string; namespace?: string };
  spec?: { replicaSpecs?: Record<string, Role>; training?: unknown };
  status?: Status;
}

export interface Job {
  version: string;
  row: Row;
  object: TrainingJob;
  hints?: string[];
  keepsCheckpoints?: boolean; // they outlive its pods
  actions?: Partial<Record<ActionName, Allowed>>;
}

type Numbers = (number | null)[];

export interface Series {
  version: string;
  stepsPerPoint: number;
  step: number[];
  seconds: Numbers;
  loss: Numbers;
  learningRate: Numbers;
  stepsPerSecond: Numbers;
  samplesPerSecond: Numbers;
  evaluations?: { step: number; loss?: number; accuracy?: number; auc?: number; seconds?: number }[];
}

export interface HeatMap {
  version: string;
  stepsPerColumn: number;
  steps: number[];
  members: { name: string; rank?: number; node?: string; pod?: string }[]; // without a rank: in no view now
  parts: string[];
  values: Record<string, Numbers[]>;
}

export interface TimelineItem {
  time?: string; // absent of an evaluation: its seconds are those that the job has trained
  seconds?: number;
  step?: number;
  kind: string;
  severity?: "Info" | "Warning" | "Error";
  title: string;
  phase?: Phase; // of kind Phase: the one that begins
  text?: string;
  members?: string[];
  endSeconds?: number;
}

export interface JobEvent {
  time: string;
  type?: string;
  reason?: string;
  object?: string;
  message?: string;
  count?: number;
}

export interface Log {
  pod: string;
  member: string;
  role?: string;
  index?: number;
  attempt?: number;
  node?: string;
  containers?: string[];
  live?: boolean;
}

export interface Decision {
  text: string;
  in?: number | null;
}
