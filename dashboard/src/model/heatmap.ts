// The matrix behind the heat map: one row a member, one column some steps that all members took together. It knows each cell in milliseconds and
// over its column's median, and which of three patterns it holds: a rank that stays slow, one that rotates, and a single hiccup.
//
// All-reduce makes every member's step equally long. The slow one is seen in its own time: the step without the wait for others, and without the
// checkpoints that rank 0 alone writes.

import type { HeatMap } from "../api/types.ts";

export const OWN = "own";
export type Order = "rank" | "slowest" | "node";

export interface Matrix {
  rows: number;
  columns: number;
  cells: Float32Array; // milliseconds, NaN where nothing is known; cell of row r and column c at r * columns + c
  medians: Float32Array; // of each column
}

// "step", "own", and the parts that the server knows.
export function partsOf(map: HeatMap): string[] {
  const has = (part: string) => map.values[part] !== undefined;
  return [...(has("step") && has("wait") ? [OWN] : []), ...(has("step") ? ["step"] : []), ...map.parts.filter(has)];
}

export function median(values: number[] | Float32Array): number {
  const sorted = Array.from(values)
    .filter((value) => !Number.isNaN(value))
    .sort((a, b) => a - b);
  if (sorted.length === 0) return NaN;
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function matrixOf(map: HeatMap, part: string): Matrix {
  const rows = map.members.length;
  const columns = map.steps.length;
  const cells = new Float32Array(rows * columns).fill(NaN);
  const values = map.values[part === OWN ? "step" : part];
  const minus = part === OWN ? [map.values["wait"], map.values["checkpoint"]] : [];
  for (let r = 0; r < rows; ++r) {
    for (let c = 0; c < columns; ++c) {
      const value = values?.[r]?.[c];
      if (value === null || value === undefined) continue;
      const others = minus.reduce((sum, times) => sum + (times?.[r]?.[c] ?? 0), 0);
      cells[r * columns + c] = Math.max(0, value - others);
    }
  }
  const medians = new Float32Array(columns);
  const column = new Float32Array(rows);
  for (let c = 0; c < columns; ++c) {
    for (let r = 0; r < rows; ++r) column[r] = cells[r * columns + c]!;
    medians[c] = median(column);
  }
  return { rows, columns, cells, medians };
}

// A cell over its column's median; NaN where either is not known.
export function ratioAt(matrix: Matrix, row: number, column: number): number {
  const typical = matrix.medians[column]!;
  return typical > 0 ? matrix.cells[row * matrix.columns + column]! / typical : NaN;
}

// Milliseconds below which `share` of the known cells lie: a few huge ones must not make all others look alike.
export function quantile(matrix: Matrix, share: number): number {
  const sorted = matrix.cells.filter((value) => !Number.isNaN(value)).sort();
  return sorted.length === 0 ? NaN : sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
}

// The mean over all columns of each row's ratio.
export function rowMeans(matrix: Matrix): Float32Array {
  const means = new Float32Array(matrix.rows).fill(NaN);
  for (let r = 0; r < matrix.rows; ++r) {
    let sum = 0;
    let count = 0;
    for (let c = 0; c < matrix.columns; ++c) {
      const ratio = ratioAt(matrix, r, c);
      if (Number.isNaN(ratio)) continue;
      sum += ratio;
      ++count;
    }
    if (count > 0) means[r] = sum / count;
  }
  return means;
}

// Which row of the matrix is drawn at each place.
export function orderRows(map: HeatMap, means: Float32Array, order: Order): number[] {
  const places = map.members.map((_, row) => row);
  const rank = (row: number) => map.members[row]!.rank ?? Number.MAX_SAFE_INTEGER; // those in no view come last
  const mean = (row: number) => (Number.isNaN(means[row]!) ? -Infinity : means[row]!);
  if (order === "slowest") return places.sort((a, b) => mean(b) - mean(a) || rank(a) - rank(b));
  if (order === "node")
    return places.sort(
      (a, b) => (map.members[a]!.node ?? "").localeCompare(map.members[b]!.node ?? "", "en", { numeric: true }) || rank(a) - rank(b),
    );
  return places.sort((a, b) => rank(a) - rank(b));
}

export interface SlowRow {
  row: number;
  factor: number; // the mean of its slow columns
  from: number; // the first and the last column in which it is slow
  to: number;
}

export type Pattern =
  | { kind: "none" }
  | { kind: "fixed"; rows: SlowRow[] }
  | { kind: "rotating"; rows: number; share: number } // share: of the columns that some row is slow in
  | { kind: "hiccups"; cells: { row: number; column: number; factor: number }[] };

const SLOW = 1.25;
const STAYS = 0.7; // of the known columns from the first slow one of a run to its last
const LONG = 0.1; // of all known columns
const OFTEN = 0.25; // of all known columns
const TURNS = 3;
const FEW = 8;
const NO_CHANCE = 16; // columns: a shorter run may be chance where its row is often slow

// What a person would see, in numbers. A row stays slow when it is so nearly without a break over a tenth of the columns, whatever it was before and
// after; three or more that do so one after another take turns, as do rows that are slow in a quarter of the columns together. What is left are
// hiccups. Columns of which nothing is known count nowhere.
export function patternOf(matrix: Matrix): Pattern {
  const columns = matrix.medians.filter((typical) => typical > 0).length;
  const staying: SlowRow[] = [];
  const cells: { row: number; column: number; factor: number }[] = [];
  const slowColumns = new Set<number>();
  const slowRows = new Set<number>();
  for (let row = 0; row < matrix.rows; ++row) {
    let slow = 0;
    for (let column = 0; column < matrix.columns; ++column) {
      const factor = ratioAt(matrix, row, column);
      if (!(factor >= SLOW)) continue;
      ++slow;
      slowColumns.add(column);
      slowRows.add(row);
      cells.push({ row, column, factor });
    }
    const run = longestRun(matrix, row);
    if (!run || run.known < Math.max(4, LONG * columns)) continue;
    if (run.known < NO_CHANCE && 2 * (slow - run.slow) > run.slow) continue;
    staying.push({ row, factor: run.sum / run.slow, from: run.from, to: run.to });
  }
  if (cells.length === 0) return { kind: "none" };
  const rotates = { kind: "rotating", rows: slowRows.size, share: slowColumns.size / columns } as const;
  if (staying.length >= TURNS && takeTurns(staying)) return rotates;
  if (staying.length > 0)
    return { kind: "fixed", rows: staying.sort((a, b) => b.factor * (b.to - b.from + 1) - a.factor * (a.to - a.from + 1)) };
  if (slowColumns.size >= OFTEN * columns && slowRows.size >= TURNS) return rotates;
  return { kind: "hiccups", cells: cells.sort((a, b) => b.factor - a.factor).slice(0, FEW) };
}

interface Run {
  from: number;
  to: number;
  known: number; // columns
  slow: number; // of them
  sum: number; // of the slow ones' factors
  weight: number;
}

// The columns in which a row is slow nearly without a break: the stretch of the greatest sum, where a slow column counts 1 - STAYS and another one
// -STAYS (Kadane). It begins and ends with a slow column; null: there is none.
function longestRun(matrix: Matrix, row: number): Run | null {
  let best: Run | null = null;
  let [from, known, slow, sum, weight] = [0, 0, 0, 0, 0];
  for (let column = 0; column < matrix.columns; ++column) {
    const factor = ratioAt(matrix, row, column);
    if (Number.isNaN(factor)) continue;
    if (weight <= 0) [from, known, slow, sum, weight] = [column, 0, 0, 0, 0];
    ++known;
    weight -= STAYS;
    if (factor < SLOW) continue;
    ++slow;
    sum += factor;
    weight += 1;
    if (!best || weight > best.weight) best = { from, to: column, known, slow, sum, weight };
  }
  return best;
}

function takeTurns(rows: readonly SlowRow[]): boolean {
  const inOrder = [...rows].sort((a, b) => a.from - b.from);
  return inOrder.every((row, i) => i === 0 || row.from >= inOrder[i - 1]!.to);
}

// The steps from the first of column `a` to the last of column `b`, in either order.
export function stepRange(map: HeatMap, a: number, b: number): [number, number] {
  const [low, high] = a <= b ? [a, b] : [b, a];
  return [map.steps[low]!, map.steps[high]! + map.stepsPerColumn - 1];
}

// How many columns to ask for: each at least two pixels wide.
export function columnsFor(width: number): number {
  return Math.max(40, Math.min(600, Math.floor(width / 2)));
}
