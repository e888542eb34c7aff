// The times of members' steps: a base that all share, and what makes one of them slow.

import type { HeatMap } from "../../../dashboard/src/api/types.ts";
import { around, noise } from "./random.ts";

export type Slowness =
  | { kind: "none" }
  | { kind: "fixed"; rank: number; factor: number; since: number }
  | { kind: "rotating"; every: number; factor: number }
  | { kind: "hiccup"; rank: number; step: number; steps: number; factor: number };

export interface Times {
  seed: number;
  members: number;
  computeMs: number;
  slowness: Slowness;
  checkpointEvery: number;
}

function factorOf({ slowness: s, members }: Times, rank: number, step: number): number {
  switch (s.kind) {
    case "fixed":
      return rank === s.rank && step >= s.since ? s.factor : 1;
    case "rotating":
      return (Math.floor(step / s.every) * 7) % members === rank ? s.factor : 1;
    case "hiccup":
      return rank === s.rank && step >= s.step && step < s.step + s.steps ? s.factor : 1;
    case "none":
      return 1;
  }
}

const PARTS = ["input", "compute", "wait", "transfer", "update", "checkpoint"] as const;
export type PartTimes = Record<(typeof PARTS)[number] | "step", number>;

// Of all members in one step: who is done early waits for the last.
export function stepTimes(times: Times, step: number): PartTimes[] {
  const own = Array.from({ length: times.members }, (_, rank) => {
    const usual = 1 + 0.025 * around(times.seed, rank) + 0.02 * around(times.seed + 1, rank, step);
    return {
      input: 2 + 1.5 * noise(times.seed + 2, rank, step),
      compute: times.computeMs * usual * factorOf(times, rank, step),
      transfer: times.computeMs * 0.12 * (1 + 0.2 * noise(times.seed + 3, rank, step)),
      update: times.computeMs * 0.05,
      checkpoint: rank === 0 && step % times.checkpointEvery === 0 ? times.computeMs * 2.5 : 0,
    };
  });
  const longest = Math.max(...own.map((o) => o.input + o.compute + o.checkpoint));
  return own.map((o) => {
    const wait = longest - (o.input + o.compute + o.checkpoint);
    return { ...o, wait, step: longest + o.transfer + o.update };
  });
}

const SAMPLED = 4;

export function heatMap(
  times: Times,
  version: string,
  newest: number,
  from: number,
  to: number,
  columns: number,
  names: HeatMap["members"],
): HeatMap {
  if (names.length === 0) return { version, stepsPerColumn: 1, steps: [], members: [], parts: [...PARTS], values: {} };
  const last = Math.min(to, newest);
  const steps: number[] = [];
  let stepsPerColumn = 1;
  while ((last - from + 1) / stepsPerColumn > columns) stepsPerColumn *= 2;
  const round = (value: number) => Math.round(value * 100) / 100;
  const begin = Math.floor(from / stepsPerColumn) * stepsPerColumn;
  const values: HeatMap["values"] = Object.fromEntries(["step", ...PARTS].map((part) => [part, names.map(() => [])]));
  for (let step = begin; step <= last; step += stepsPerColumn) {
    steps.push(step);
    const every = Math.max(1, Math.floor(stepsPerColumn / SAMPLED));
    const sums = names.map(() => new Map<string, number>());
    let count = 0;
    for (let s = step; s < step + stepsPerColumn; s += every, ++count)
      stepTimes(times, s).forEach((each, rank) => {
        for (const [part, ms] of Object.entries(each)) sums[rank]!.set(part, (sums[rank]!.get(part) ?? 0) + ms);
      });
    names.forEach((_, rank) => {
      // One that came late told nothing of the steps before.
      const absent = rank === times.members - 1 && step < newest * 0.12;
      for (const part of ["step", ...PARTS]) values[part]![rank]!.push(absent ? null : round(sums[rank]!.get(part)! / count));
    });
  }
  return { version, stepsPerColumn, steps, members: names, parts: [...PARTS], values };
}
