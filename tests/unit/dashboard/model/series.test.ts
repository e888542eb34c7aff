import assert from "node:assert/strict";
import { test } from "node:test";
import type { Series } from "../../../../dashboard/src/api/types.ts";
import {
  alignLines,
  bridged,
  evaluationsOf,
  flagsOf,
  lossOf,
  pointsOf,
  samplePlaces,
  summaryOf,
  valueAt,
} from "../../../../dashboard/src/model/series.ts";

const SERIES: Series = {
  version: "1",
  stepsPerPoint: 2,
  step: [2, 4, 4, 6],
  seconds: [1, 2, 3, null],
  loss: [3, 2, 9, null],
  learningRate: [],
  stepsPerSecond: [],
  samplesPerSecond: [],
  evaluations: [
    { step: 3, loss: 2.5, accuracy: 0.5, seconds: 1.5 },
    { step: 6, accuracy: 0.6 },
  ],
};

test("PointsRiseAlongTheAxis", () => {
  assert.deepEqual(pointsOf(SERIES, "loss", "step"), { x: [2, 4, 6], y: [3, 2, null] });
  assert.deepEqual(pointsOf(SERIES, "loss", "seconds"), { x: [1, 2, 3], y: [3, 2, 9] });
});

test("EvaluationsWithoutTheValueAreLeftOut", () => {
  assert.deepEqual(evaluationsOf(SERIES, "loss", "step"), { x: [3], y: [2.5] });
  assert.deepEqual(evaluationsOf(SERIES, "accuracy", "seconds"), { x: [1.5], y: [0.5] });
});

test("LinesShareOneAxis", () => {
  const aligned = alignLines([
    { x: [1, 3], y: [10, 30] },
    { x: [2, 3], y: [200, 300] },
  ]);
  assert.deepEqual(aligned, {
    x: [1, 2, 3],
    lines: [
      [10, null, 30],
      [null, 200, 300],
    ],
  });
});

test("GapsOfOtherLinesPointsAreFilledStraight", () => {
  assert.deepEqual(bridged([0, 1, 4, 8, 9], [null, 10, null, 80, null]), [null, 10, 40, 80, null]);
  assert.deepEqual(bridged([0, 1], [null, null]), [null, null]);
});

test("EvaluationsLeaveNoGapInTheTrainingLoss", () => {
  assert.deepEqual(lossOf(SERIES, "step"), { x: [2, 3, 4, 6], training: [3, 2.5, 2, null], test: [null, 2.5, null, null] });
});

test("MarksOfLossesHaveTheStepThatWasUnderWay", () => {
  const series = { ...SERIES, step: [0, 10, 20, 30], seconds: [0.5, 2, null, 6] };
  const items = [
    { kind: "Lost", title: "MemberLost", seconds: 5 },
    { kind: "Restart", title: "Restarting", seconds: 2 },
    { kind: "Straggler", title: "StragglerDetected", seconds: 1, step: 7 },
    { kind: "Replacement", title: "MemberReplacing", seconds: 99 },
    { kind: "Lost", title: "before the first step", seconds: 0.1 },
    { kind: "Checkpoint", title: "Checkpointed", seconds: 5 },
  ];
  const places = (axis: "step" | "seconds") => flagsOf(items, series, axis).map(({ x }) => x);
  assert.deepEqual(places("step"), [10, 10, 7, 30]);
  assert.deepEqual(places("seconds"), [5, 2, 1, 99, 0.1]);
});

test("ValueUnderThePointerIsTheNewestKnown", () => {
  assert.equal(valueAt([1, null, 3], 1), 1);
  assert.equal(valueAt([null, null], 1), null);
  assert.equal(valueAt([1, 2], 9), 2);
});

test("SummaryAndTableHaveTheEnds", () => {
  assert.deepEqual(summaryOf([null, 3, 1, 2]), { first: 3, last: 2, least: 1, most: 3 });
  assert.equal(summaryOf([null]), null);
  assert.deepEqual(samplePlaces(100, 3), [0, 50, 99]);
  assert.deepEqual(samplePlaces(2, 5), [0, 1]);
});
