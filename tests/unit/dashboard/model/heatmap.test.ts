import assert from "node:assert/strict";
import { test } from "node:test";
import type { HeatMap } from "../../../../dashboard/src/api/types.ts";
import {
  columnsFor,
  matrixOf,
  median,
  orderRows,
  OWN,
  partsOf,
  patternOf,
  quantile,
  ratioAt,
  rowMeans,
  stepRange,
} from "../../../../dashboard/src/model/heatmap.ts";

type Value = number | null;

function mapOf(step: Value[][], wait?: Value[][], stepsPerColumn = 4): HeatMap {
  return {
    version: "1",
    stepsPerColumn,
    steps: step[0]!.map((_, column) => column * stepsPerColumn),
    members: step.map((_, rank) => ({ name: `worker-${rank}`, rank, node: `n${step.length - rank}` })),
    parts: wait ? ["wait"] : [],
    values: wait ? { step, wait } : { step },
  };
}

// 100 ms, and what `slow` makes of it.
function cells(rows: number, columns: number, slow: (row: number, column: number) => number): Value[][] {
  return Array.from({ length: rows }, (_, row) => Array.from({ length: columns }, (_, column) => 100 * slow(row, column)));
}

test("OwnTimeIsTheStepWithoutTheWait", () => {
  const map = mapOf(
    [
      [100, 100],
      [100, null],
    ],
    [
      [60, 0],
      [10, null],
    ],
  );
  assert.deepEqual(partsOf(map), [OWN, "step", "wait"]);
  const matrix = matrixOf(map, OWN);
  assert.deepEqual([...matrix.cells], [40, 100, 90, NaN]);
  assert.deepEqual([...matrix.medians], [65, 100]);
  assert.equal(ratioAt(matrix, 1, 0).toFixed(3), (90 / 65).toFixed(3));
  assert.ok(Number.isNaN(ratioAt(matrix, 1, 1)));
});

test("MedianLeavesOutWhatIsNotKnown", () => {
  assert.equal(median([3, NaN, 1, 2]), 2);
  assert.equal(median([4, 1]), 2.5);
  assert.ok(Number.isNaN(median([])));
});

test("RankThatIsAlwaysSlowIsFixed", () => {
  const pattern = patternOf(matrixOf(mapOf(cells(8, 40, (row) => (row === 5 ? 1.9 : 1))), "step"));
  assert.equal(pattern.kind, "fixed");
  if (pattern.kind !== "fixed") return;
  assert.deepEqual(
    pattern.rows.map((each) => [each.row, each.from, each.to]),
    [[5, 0, 39]],
  );
  assert.ok(Math.abs(pattern.rows[0]!.factor - 1.9) < 1e-5);
});

test("RankThatBecomesSlowIsFixedFromThere", () => {
  const pattern = patternOf(matrixOf(mapOf(cells(8, 40, (row, column) => (row === 2 && column >= 30 ? 2 : 1))), "step"));
  assert.equal(pattern.kind, "fixed");
  if (pattern.kind === "fixed") assert.deepEqual([pattern.rows[0]!.row, pattern.rows[0]!.from], [2, 30]);
});

// 4 ranks and 400 columns: rank 1 is at 9x in the last fifth, whatever else there is.
function lastFifth(other: (row: number, column: number) => number | null): Value[][] {
  return Array.from({ length: 4 }, (_, row) =>
    Array.from({ length: 400 }, (_, column) => {
      const factor = other(row, column);
      return factor === null ? null : 100 * (row === 1 && column >= 320 ? 9 : factor);
    }),
  );
}

test("HiccupBeforeDoesNotHideTheRankThatStaysSlow", () => {
  const cases: [string, (row: number, column: number) => number | null][] = [
    ["a hiccup in the first column", (row, column) => (row === 1 && column === 0 ? 30 : 1)],
    ["a hiccup of another rank", (row, column) => (row === 2 && column === 7 ? 30 : 1)],
    ["every second column unknown", (_, column) => (column % 2 === 1 ? null : 1)],
    ["every rank at times slow", (row, column) => ((column * 7 + row) % 4 === 0 ? 1.5 : 1)],
  ];
  for (const [name, other] of cases) {
    const pattern = patternOf(matrixOf(mapOf(lastFifth(other)), "step"));
    assert.equal(pattern.kind, "fixed", name);
    if (pattern.kind !== "fixed") continue;
    assert.deepEqual([pattern.rows.length, pattern.rows[0]!.row, pattern.rows[0]!.from], [1, 1, 320], name);
    assert.ok(pattern.rows[0]!.factor > 7 && pattern.rows[0]!.factor < 9.001, name);
  }
});

test("ShortRunOfARankThatIsOftenSlowIsChance", () => {
  // In each column another rank is slow; rank 0 also is four times in a row.
  const slow = (row: number, column: number) => (column < 4 ? row === 0 : (column * 3) % 4 === row);
  assert.equal(patternOf(matrixOf(mapOf(cells(4, 40, (row, column) => (slow(row, column) ? 2 : 1))), "step")).kind, "rotating");
});

test("RanksThatTakeTurnsRotate", () => {
  const often = patternOf(matrixOf(mapOf(cells(8, 80, (row, column) => (column % 8 === row ? 2 : 1))), "step"));
  assert.equal(often.kind, "rotating");
  const longTurns = patternOf(matrixOf(mapOf(cells(8, 80, (row, column) => (Math.floor(column / 10) === row ? 2 : 1))), "step"));
  assert.equal(longTurns.kind, "rotating");
  if (longTurns.kind === "rotating") assert.equal(longTurns.rows, 8);
});

test("SingleSlowCellIsAHiccup", () => {
  const pattern = patternOf(matrixOf(mapOf(cells(8, 80, (row, column) => (row === 3 && column === 41 ? 6 : 1))), "step"));
  assert.equal(pattern.kind, "hiccups");
  if (pattern.kind === "hiccups")
    assert.deepEqual(
      pattern.cells.map((cell) => [cell.row, cell.column]),
      [[3, 41]],
    );
});

test("StepThatIsLongForAllStandsOutForNobody", () => {
  assert.equal(patternOf(matrixOf(mapOf(cells(8, 80, (_, column) => (column === 41 ? 6 : 1))), "step")).kind, "none");
});

test("RowsAreOrderedByRankSlownessOrNode", () => {
  const map = mapOf(cells(3, 4, (row) => 1 + (row === 1 ? 1 : 0)));
  const means = rowMeans(matrixOf(map, "step"));
  assert.deepEqual(orderRows(map, means, "rank"), [0, 1, 2]);
  assert.deepEqual(orderRows(map, means, "slowest"), [1, 0, 2]);
  assert.deepEqual(orderRows(map, means, "node"), [2, 1, 0]);
});

test("MembersWithoutARankComeLast", () => {
  const map = mapOf(cells(3, 4, () => 1));
  delete map.members[0]!.rank;
  const means = rowMeans(matrixOf(map, "step"));
  assert.deepEqual(orderRows(map, means, "rank"), [1, 2, 0]);
});

test("ZoomTakesWholeColumnsInEitherDirection", () => {
  const map = mapOf(cells(2, 10, () => 1));
  assert.deepEqual(stepRange(map, 2, 4), [8, 19]);
  assert.deepEqual(stepRange(map, 4, 2), [8, 19]);
});

test("QuantileIgnoresUnknownCells", () => {
  assert.equal(quantile(matrixOf(mapOf([[1, null, 3, 2]]), "step"), 0.99), 3);
  assert.equal(columnsFor(10), 40);
  assert.equal(columnsFor(1000), 500);
  assert.equal(columnsFor(5000), 600);
});
