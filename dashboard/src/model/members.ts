// Members of a job: where a step's time goes, and what else stands in their table.

import type { Gpu, Member, Role, TrainingJob } from "../api/types.ts";

export const PARTS = ["input", "compute", "wait", "transfer", "update"] as const;
export type Part = (typeof PARTS)[number];

export function memberName(member: { role?: string | undefined; index: number }): string {
  return `${member.role ?? "worker"}-${member.index}`;
}

export function partMs(member: Member, part: Part): number {
  return member[`${part}Ms`] ?? 0;
}

export function totalMs(member: Member): number {
  return member.stepMs ?? PARTS.reduce((sum, part) => sum + partMs(member, part), 0);
}

// The shares of the bar, of the longest step among the members; what no part accounts for stays empty.
export function barShares(member: Member, longestMs: number): { part: Part; share: number }[] {
  if (!(longestMs > 0)) return [];
  return PARTS.map((part) => ({ part, share: Math.min(1, partMs(member, part) / longestMs) })).filter(({ share }) => share > 0.002);
}

export function gpuErrors(gpu: Gpu): string {
  return (gpu.xids ?? 0) > 0 ? `${gpu.xids} ${gpu.xids === 1 ? "Xid" : "Xids"} (${gpu.lastXid})` : "";
}

// Of a run of this machine by its own process, which knows them to the last; the job's status may be older.
export const membersOf = (job: TrainingJob): Member[] => job.status?.run?.members ?? job.status?.members ?? [];

const ROLES = ["chief", "worker", "ps", "evaluator"];

// Members that train come first, by rank; those without one by role, as everywhere, and index.
export function byRank(members: readonly Member[]): Member[] {
  const place = (member: Member) => (member.rank >= 0 ? member.rank : Number.MAX_SAFE_INTEGER);
  const role = (member: Member) => ROLES.indexOf(member.role ?? "worker");
  return [...members].sort((a, b) => place(a) - place(b) || role(a) - role(b) || a.index - b.index);
}

// Roles are named in any case.
export function roleOf(object: TrainingJob, name: string): Role | undefined {
  return Object.entries(object.spec?.replicaSpecs ?? {}).find(([role]) => role.toLowerCase() === name)?.[1];
}

export const workersOf = (object: TrainingJob): number => roleOf(object, "worker")?.replicas ?? 1;
