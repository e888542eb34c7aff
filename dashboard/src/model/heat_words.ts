// The heat map in words: what stands out in it, and what a cell is.

import type { HeatMap } from "../api/types.ts";
import { factor, fixed, ms, withCommas } from "../format/numbers.ts";
import { ratioAt, stepRange, type Matrix, type Pattern } from "./heatmap.ts";

const PART_NAMES: Record<string, string> = { own: "own time", step: "whole step" };
export const partName = (part: string): string => PART_NAMES[part] ?? part;

export function memberText(map: HeatMap, row: number): string {
  const member = map.members[row]!;
  const name = `${member.name}${member.node ? ` on ${member.node}` : ""}`;
  return member.rank === undefined ? name : `rank ${member.rank} (${name})`;
}

export function stepText(map: HeatMap, column: number): string {
  const [first, last] = stepRange(map, column, column);
  return first === last ? `step ${withCommas(first)}` : `steps ${withCommas(first)} to ${withCommas(last)}`;
}

// What a person would see, in a sentence. `slowNow`: the members that are found to be slow at present.
export function patternText(map: HeatMap, pattern: Pattern, slowNow: readonly string[] = []): string {
  switch (pattern.kind) {
    case "none":
      return "No rank stands out.";
    case "fixed": {
      const [first, ...others] = pattern.rows;
      const last = map.steps.length - 1;
      const all = first!.from <= last * 0.03 && first!.to >= last * 0.97;
      const when = all
        ? "Always slow"
        : first!.to >= last * 0.97
          ? `Slow since step ${withCommas(map.steps[first!.from])}`
          : `Slow from step ${withCommas(map.steps[first!.from])} to ${withCommas(map.steps[first!.to])}`;
      const more = others.length > 0 ? `, and ${others.length} more` : "";
      return `${when}: ${memberText(map, first!.row)}, ${factor(first!.factor)} the median${more}.`;
    }
    case "rotating": {
      const now = slowNow.length === 0 ? "none stays slow" : `${slowNow.join(", ")} ${slowNow.length === 1 ? "is" : "are"} slow now`;
      return `The slow rank rotates: ${pattern.rows} ranks in turn, in ${fixed(pattern.share * 100, 0)} % of the columns; ${now}.`;
    }
    case "hiccups": {
      const worst = pattern.cells[0]!;
      return (
        `A hiccup: ${memberText(map, worst.row)}, ${factor(worst.factor)} the median at ${stepText(map, worst.column)}` +
        (pattern.cells.length > 1 ? `; ${pattern.cells.length - 1} smaller.` : ".")
      );
    }
  }
}

// What a screen reader says of a cell.
export function cellText(map: HeatMap, matrix: Matrix, row: number, column: number): string {
  const value = matrix.cells[row * matrix.columns + column]!;
  const told = `${ms(value)} milliseconds, ${factor(ratioAt(matrix, row, column))} the median`;
  return `${stepText(map, column)}, ${memberText(map, row)}: ${Number.isNaN(value) ? "nothing" : told}`;
}
