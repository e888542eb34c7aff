import assert from "node:assert/strict";
import { test } from "node:test";
import {
  cellAt,
  cellsWidth,
  frameFor,
  hasNames,
  heightOf,
  labelledPlaces,
  rawRange,
  tickColumns,
  type Picture,
} from "../../../../dashboard/src/charts/heat_painter.ts";

const MATRIX = { rows: 4, columns: 10, cells: new Float32Array(40).fill(5), medians: new Float32Array(10).fill(5) };
const PICTURE = { matrix: MATRIX } as Picture;

test("SlowRowsAlwaysHaveALabel", () => {
  assert.deepEqual(
    labelledPlaces(8, 4, (place) => place === 4),
    [0, 4],
  );
  assert.deepEqual(
    labelledPlaces(4, 12, () => false),
    [0, 1, 2, 3],
  );
  assert.deepEqual(
    labelledPlaces(8, 6, (place) => place === 5),
    [0, 2, 5],
  );
});

test("FewRowsHaveTheirMembersNames", () => {
  assert.equal(hasNames(frameFor(1000, 16, false)), true);
  assert.equal(hasNames(frameFor(1000, 17, false)), false);
  assert.equal(hasNames(frameFor(400, 4, true)), false);
  assert.ok(cellsWidth(frameFor(1000, 16, false)) < cellsWidth(frameFor(1000, 17, false)));
});

test("PointerFindsItsCell", () => {
  const frame = frameFor(1000, 4, false);
  const width = cellsWidth(frame) / 10;
  assert.deepEqual(cellAt(frame, PICTURE, frame.left + 3.5 * width, frame.top + 1), { place: 0, column: 3 });
  assert.equal(cellAt(frame, PICTURE, frame.left - 1, frame.top + 1), null);
  assert.equal(cellAt(frame, PICTURE, frame.left + 1, heightOf(frame, 4)), null);
});

test("ColoursOfEqualCellsHaveARange", () => {
  assert.deepEqual(rawRange(MATRIX), [2.5, 7.5]);
});

test("EachLabelledStepIsAnother", () => {
  assert.deepEqual(tickColumns(2, 1000), [0, 1]);
  assert.deepEqual(tickColumns(400, 400), [0, 100, 200, 300]);
  assert.deepEqual(tickColumns(1, 10), [0]);
});
