// The timeline's lanes: which kind of thing lies where, and which marks would lie on one another.

import type { TimelineItem } from "../api/types.ts";

export interface Mark {
  item: TimelineItem;
  index: number; // in the list
  from: number; // 0 to 1 of the lane
  to: number | null; // the end of what lasts
  count: number; // marks that fell together here
}

export interface Lane {
  kind: string;
  marks: Mark[];
}

export interface Layout {
  lanes: Lane[];
  begin: number; // seconds
  end: number;
}

const ORDER = [
  "Phase",
  "View",
  "Lost",
  "Restart",
  "Straggler",
  "Replacement",
  "Rebalance",
  "Preflight",
  "Checkpoint",
  "Evaluation",
  "Note",
  "Pod",
];

export function kindsOf(items: readonly TimelineItem[]): string[] {
  const place = (kind: string) => (ORDER.includes(kind) ? ORDER.indexOf(kind) : ORDER.length);
  return [...new Set(items.map((item) => item.kind))].sort((a, b) => place(a) - place(b) || a.localeCompare(b));
}

// Marks nearer than `closest` (a share of the lane) become one that counts them. A phase lasts until the next one begins; the last thing is open
// until `now` (seconds since the job began).
export function layoutTimeline(items: readonly TimelineItem[], now: number, closest = 0.006): Layout {
  const placed = items.map((item, index) => ({ item, index })).filter(({ item }) => item.seconds !== undefined);
  const begin = Math.min(0, ...placed.map(({ item }) => item.seconds!));
  const end = Math.max(begin + 1, now, ...placed.map(({ item }) => item.endSeconds ?? item.seconds!));
  const share = (seconds: number) => (seconds - begin) / (end - begin);
  const lanes = kindsOf(placed.map(({ item }) => item)).map((kind): Lane => {
    const own = placed.filter(({ item }) => item.kind === kind);
    const marks: Mark[] = [];
    own.forEach(({ item, index }, at) => {
      const from = share(item.seconds!);
      const following = own[at + 1]?.item.seconds;
      const until = kind === "Phase" ? (following ?? item.endSeconds ?? end) : item.endSeconds;
      const to = until === undefined ? null : share(until);
      const last = marks[marks.length - 1];
      if (kind !== "Phase" && last && last.to === null && to === null && from - last.from < closest) {
        ++last.count;
        return;
      }
      marks.push({ item, index, from, to, count: 1 });
    });
    return { kind, marks };
  });
  return { lanes, begin, end };
}
