import assert from "node:assert/strict";
import { test } from "node:test";
import type { HeatMap } from "../../../../dashboard/src/api/types.ts";
import { cellText, patternText, stepText } from "../../../../dashboard/src/model/heat_words.ts";
import { matrixOf, patternOf } from "../../../../dashboard/src/model/heatmap.ts";

// 40 columns of 8 steps, 100 ms each, and what `slow` makes of it.
function mapOf(slow: (row: number, column: number) => number): HeatMap {
  const range = (count: number) => Array.from({ length: count }, (_, i) => i);
  return {
    version: "1",
    stepsPerColumn: 8,
    steps: range(40).map((column) => 1000 + column * 8),
    members: range(6).map((rank) => ({ name: `worker-${rank}`, rank, node: "a" })),
    parts: [],
    values: { step: range(6).map((row) => range(40).map((column) => 100 * slow(row, column))) },
  };
}

const said = (map: HeatMap) => patternText(map, patternOf(matrixOf(map, "step")));

test("PatternIsSaidInASentence", () => {
  const cases: [(row: number, column: number) => number, string][] = [
    [() => 1, "No rank stands out."],
    [(row) => (row === 2 ? 2 : 1), "Always slow: rank 2 (worker-2 on a), 2.00× the median."],
    [(row, column) => (row === 2 && column >= 20 ? 2 : 1), "Slow since step 1,160: rank 2 (worker-2 on a), 2.00× the median."],
    [
      (row, column) => (row === 2 && column >= 10 && column < 20 ? 2 : 1),
      "Slow from step 1,080 to 1,152: rank 2 (worker-2 on a), 2.00× the median.",
    ],
    [(row, column) => (column % 6 === row ? 2 : 1), "The slow rank rotates: 6 ranks in turn, in 100 % of the columns; none stays slow."],
    [(row, column) => (row === 1 && column === 5 ? 4 : 1), "A hiccup: rank 1 (worker-1 on a), 4.00× the median at steps 1,040 to 1,047."],
  ];
  for (const [slow, expected] of cases) assert.equal(said(mapOf(slow)), expected);
});

test("MemberThatIsSlowNowIsNotDenied", () => {
  const map = mapOf((row, column) => (column % 6 === row ? 2 : 1));
  const pattern = patternOf(matrixOf(map, "step"));
  const rotates = "The slow rank rotates: 6 ranks in turn, in 100 % of the columns;";
  assert.equal(patternText(map, pattern, ["worker-1"]), `${rotates} worker-1 is slow now.`);
  assert.equal(patternText(map, pattern, ["worker-1", "worker-2"]), `${rotates} worker-1, worker-2 are slow now.`);
});

test("MemberWithoutARankIsCalledByItsName", () => {
  const map = mapOf((row) => (row === 2 ? 2 : 1));
  delete map.members[2]!.rank;
  assert.equal(said(map), "Always slow: worker-2 on a, 2.00× the median.");
});

test("CellIsReadOut", () => {
  const map = mapOf((row) => (row === 1 ? 1.5 : 1));
  assert.equal(
    cellText(map, matrixOf(map, "step"), 1, 0),
    "steps 1,000 to 1,007, rank 1 (worker-1 on a): 150.0 milliseconds, 1.50× the median",
  );
  assert.equal(stepText({ ...map, stepsPerColumn: 1 }, 0), "step 1,000");
});
