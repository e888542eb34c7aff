// The jobs that are known, and what a delta of the stream makes of them. Rows are replaced, never changed, so that whoever draws one sees by its
// identity whether it did.

import type { JobList, Row } from "../api/types.ts";

export interface JobsDelta {
  version: string;
  full: boolean;
  rows: Row[];
  removed?: string[];
  leftOut?: string[]; // missing: as before
}

export type Jobs = Map<string, Row>; // by uid

export function fromList(list: JobList): Jobs {
  return new Map(list.jobs.map((row) => [row.uid, row]));
}

// Changes `jobs` in place: a map of a thousand is not copied for each delta. A full delta is all there is.
export function applyDelta(jobs: Jobs, delta: JobsDelta): void {
  if (delta.full) jobs.clear();
  for (const uid of delta.removed ?? []) jobs.delete(uid);
  for (const row of delta.rows) jobs.set(row.uid, row);
}

// What is said where the server knows of nothing that comes next.
export function nothingNext(row: Row): string {
  if (row.deleted !== undefined) return "Nothing: it was deleted.";
  return row.finished !== undefined ? "Nothing: it has ended." : "Nothing: it goes on as it is.";
}
