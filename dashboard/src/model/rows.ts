// Which jobs the list shows, and in which order.

import type { Phase, Row } from "../api/types.ts";

export const PHASES: Phase[] = ["Running", "Starting", "Pending", "Restarting", "Suspended", "Succeeded", "Failed", "Stopped", "Unknown"];

export type SortKey =
  | "name"
  | "phase"
  | "progress"
  | "etaSeconds"
  | "samplesPerSecond"
  | "loss"
  | "accuracy"
  | "goodput"
  | "ready"
  | "restarts"
  | "created"
  | "note";

export interface Query {
  text: string;
  phases: ReadonlySet<Phase>; // empty: all
  attention: boolean;
  namespace: string; // "": all
  deleted: boolean; // and those that the history alone has
  sort: SortKey;
  descending: boolean;
}

export const DEFAULT_QUERY: Query = {
  text: "",
  phases: new Set(),
  attention: false,
  namespace: "",
  deleted: false,
  sort: "created",
  descending: true,
};

// Somebody should look at it: it failed, it starts again, or something holds it up.
export function needsLook(row: Row): boolean {
  return (
    row.deleted === undefined &&
    (row.phase === "Failed" ||
      row.phase === "Restarting" ||
      row.phase === "Unknown" ||
      row.warning !== undefined ||
      (row.phase === "Running" && (row.stragglers ?? 0) > 0))
  );
}

export function note(row: Row): string {
  if (row.warning !== undefined) return row.warning;
  if ((row.stragglers ?? 0) > 0 && row.phase === "Running") return row.stragglerText ?? `${row.stragglers} stragglers`;
  return row.phase === "Running" ? "" : (row.reason ?? "");
}

const haystacks = new WeakMap<Row, string>();
function haystack(row: Row): string {
  let text = haystacks.get(row);
  if (text === undefined) {
    text = [`${row.namespace}/${row.name}`, row.phase, row.reason, row.model, row.strategy, row.device, row.stragglerText]
      .join("\n")
      .toLowerCase();
    haystacks.set(row, text);
  }
  return text;
}

// Each word of the search is found somewhere in the row.
export function matcher(query: Query): (row: Row) => boolean {
  const words = query.text.toLowerCase().split(/\s+/).filter(Boolean);
  return (row) =>
    (query.namespace === "" || row.namespace === query.namespace) &&
    (query.phases.size === 0 || query.phases.has(row.phase)) &&
    (!query.attention || needsLook(row)) &&
    words.every((word) => haystack(row).includes(word));
}

function sortValue(row: Row, key: SortKey): number | string | undefined {
  switch (key) {
    case "name":
      return `${row.namespace}/${row.name}`;
    case "phase":
      return PHASES.indexOf(row.phase);
    case "created":
      return row.created;
    case "note":
      return note(row) || undefined;
    case "ready":
      return row.ready;
    default:
      return row[key];
  }
}

const collator = new Intl.Collator("en", { numeric: true });

// What is not known comes last in either direction; equal rows are in the order of their names.
export function compareRows(key: SortKey, descending: boolean): (a: Row, b: Row) => number {
  const sign = descending ? -1 : 1;
  return (a, b) => {
    const x = sortValue(a, key);
    const y = sortValue(b, key);
    let order = 0;
    if (x === undefined || y === undefined) {
      if (x !== y) return x === undefined ? 1 : -1;
    } else if (typeof x === "number" && typeof y === "number") {
      order = x - y;
    } else {
      order = key === "created" ? (x < y ? -1 : x > y ? 1 : 0) : collator.compare(String(x), String(y));
    }
    return order !== 0 ? sign * order : collator.compare(a.name, b.name) || collator.compare(a.namespace, b.namespace);
  };
}

export function selectRows(rows: Iterable<Row>, query: Query): Row[] {
  const fits = matcher(query);
  const shown: Row[] = [];
  for (const row of rows) if (fits(row)) shown.push(row);
  return shown.sort(compareRows(query.sort, query.descending));
}

// The rows in the order of `held`, with newcomers at the end: a list that nobody should have to chase with the pointer.
export function holdOrder(rows: Row[], held: readonly string[]): Row[] {
  const byUid = new Map(rows.map((row) => [row.uid, row]));
  const result: Row[] = [];
  for (const uid of held) {
    const row = byUid.get(uid);
    if (row) result.push(row);
    byUid.delete(uid);
  }
  for (const row of rows) if (byUid.has(row.uid)) result.push(row);
  return result;
}

export interface Counts {
  all: number;
  attention: number;
  phases: Map<Phase, number>;
  namespaces: string[];
}

export function countRows(rows: Iterable<Row>): Counts {
  const counts: Counts = { all: 0, attention: 0, phases: new Map(), namespaces: [] };
  const namespaces = new Set<string>();
  for (const row of rows) {
    ++counts.all;
    if (needsLook(row)) ++counts.attention;
    counts.phases.set(row.phase, (counts.phases.get(row.phase) ?? 0) + 1);
    namespaces.add(row.namespace);
  }
  counts.namespaces = [...namespaces].sort(collator.compare);
  return counts;
}

// The rows from `first` up to, not including, `last` are within a window of `height` pixels that is scrolled by `top`, with a few around them.
export function visibleRange(top: number, height: number, rowHeight: number, count: number, around = 6): { first: number; last: number } {
  const first = Math.max(0, Math.min(count, Math.floor(top / rowHeight)) - around);
  return { first, last: Math.min(count, Math.ceil((top + height) / rowHeight) + around) };
}
