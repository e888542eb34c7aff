// Series as a line chart wants them: one axis of x for all lines, null where a line has no point.

import type { Series, TimelineItem } from "../api/types.ts";

export type Axis = "step" | "seconds";
export type Line = (number | null)[];

export interface Points {
  x: number[];
  y: Line;
}

// The points of one value over the axis; those without a place on it are left out.
export function pointsOf(series: Series, value: "loss" | "learningRate" | "stepsPerSecond" | "samplesPerSecond", axis: Axis): Points {
  const points: Points = { x: [], y: [] };
  const places: (number | null)[] = axis === "step" ? series.step : series.seconds;
  for (let i = 0; i < series.step.length; ++i) {
    const x = places[i];
    if (x === null || x === undefined) continue;
    if (points.x.length > 0 && x <= points.x[points.x.length - 1]!) continue; // steps that were taken again
    points.x.push(x);
    points.y.push(series[value]?.[i] ?? null);
  }
  return points;
}

export function evaluationsOf(series: Series, value: "loss" | "accuracy" | "auc", axis: Axis): Points {
  const points: Points = { x: [], y: [] };
  for (const each of series.evaluations ?? []) {
    const x = axis === "step" ? each.step : each.seconds;
    const y = each[value];
    if (x === undefined || y === undefined) continue;
    points.x.push(x);
    points.y.push(y);
  }
  return points;
}

// All lines over the union of their x, ascending.
export function alignLines(lines: Points[]): { x: number[]; lines: Line[] } {
  const x = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const place = new Map(x.map((value, index) => [value, index]));
  return {
    x,
    lines: lines.map((line) => {
      const aligned: Line = new Array<number | null>(x.length).fill(null);
      line.x.forEach((value, index) => {
        aligned[place.get(value)!] = line.y[index] ?? null;
      });
      return aligned;
    }),
  };
}

// A line without the gaps that the points of other lines on its axis leave: straight from each of its own to the next.
export function bridged(x: readonly number[], line: Line): Line {
  const result = [...line];
  let last = -1;
  for (let i = 0; i < line.length; ++i) {
    if (line[i] === null) continue;
    for (let j = last + 1; last >= 0 && j < i; ++j)
      result[j] = line[last]! + ((line[i]! - line[last]!) * (x[j]! - x[last]!)) / (x[i]! - x[last]!);
    last = i;
  }
  return result;
}

// The loss of training, and of evaluations at places of their own between its points.
export function lossOf(series: Series, axis: Axis): { x: number[]; training: Line; test: Line } {
  const { x, lines } = alignLines([pointsOf(series, "loss", axis), evaluationsOf(series, "loss", axis)]);
  return { x, training: bridged(x, lines[0]!), test: lines[1]! };
}

// The step that was under way so many seconds after the run began: the last one that had begun by then. Undefined: none had, or no step is known.
export function stepAt(series: Series, seconds: number): number | undefined {
  let found: number | undefined;
  for (let i = 0; i < series.step.length; ++i) {
    const begun = series.seconds[i];
    if (begun !== null && begun !== undefined && begun <= seconds) found = series.step[i];
  }
  return found;
}

export interface Flag {
  x: number;
  title: string;
}

const FLAGGED = new Set(["Lost", "Restart", "Straggler", "Replacement"]);

// Marks of what held the job up. Most of the timeline knows its seconds alone.
export function flagsOf(items: readonly TimelineItem[], series: Series, axis: Axis): Flag[] {
  return items.flatMap((item) => {
    if (!FLAGGED.has(item.kind)) return [];
    const step = () => item.step ?? (item.seconds === undefined ? undefined : stepAt(series, item.seconds));
    const x = axis === "step" ? step() : item.seconds;
    return x === undefined ? [] : [{ x, title: item.title }];
  });
}

// The newest value that is known at or before place `at` of the axis.
export function valueAt(line: Line, at: number): number | null {
  for (let i = Math.min(at, line.length - 1); i >= 0; --i) {
    const value = line[i];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}

export interface Summary {
  first: number;
  last: number;
  least: number;
  most: number;
}

export function summaryOf(line: Line): Summary | null {
  const known = line.filter((value): value is number => value !== null && Number.isFinite(value));
  if (known.length === 0) return null;
  return {
    first: known[0]!,
    last: known[known.length - 1]!,
    least: known.reduce((a, b) => Math.min(a, b)),
    most: known.reduce((a, b) => Math.max(a, b)),
  };
}

// At most `most` places of an axis of `count`, with its ends, for a table of a chart.
export function samplePlaces(count: number, most: number): number[] {
  if (count <= most) return Array.from({ length: count }, (_, i) => i);
  return [...new Set(Array.from({ length: most }, (_, i) => Math.round((i * (count - 1)) / (most - 1))))];
}
