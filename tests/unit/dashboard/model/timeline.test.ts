import assert from "node:assert/strict";
import { test } from "node:test";
import type { TimelineItem } from "../../../../dashboard/src/api/types.ts";
import { kindsOf, layoutTimeline } from "../../../../dashboard/src/model/timeline.ts";

const item = (kind: string, seconds: number | undefined, more: Partial<TimelineItem> = {}): TimelineItem => ({
  time: "2026-11-28T00:00:00Z",
  kind,
  title: kind,
  ...(seconds === undefined ? {} : { seconds }),
  ...more,
});

test("PhaseLastsUntilTheNextOne", () => {
  const { lanes } = layoutTimeline([item("Phase", 0), item("Phase", 25), item("View", 30)], 100);
  assert.deepEqual(
    lanes.map((lane) => lane.kind),
    ["Phase", "View"],
  );
  assert.deepEqual(
    lanes[0]!.marks.map((mark) => [mark.from, mark.to]),
    [
      [0, 0.25],
      [0.25, 1],
    ],
  );
});

test("MarksThatWouldLieOnOneAnotherAreCounted", () => {
  const { lanes } = layoutTimeline([item("View", 10), item("View", 10.1), item("View", 50)], 100);
  assert.deepEqual(
    lanes[0]!.marks.map((mark) => mark.count),
    [2, 1],
  );
});

test("WhatEndsIsASpanAndWhatHasNoTimeIsNotDrawn", () => {
  const { lanes, end } = layoutTimeline([item("Straggler", 20, { endSeconds: 200 }), item("View", undefined)], 100);
  assert.equal(end, 200);
  assert.deepEqual(
    lanes.map((lane) => lane.marks.map((mark) => [mark.from, mark.to])),
    [[[0.1, 1]]],
  );
});

test("KindsHaveAnOrderOfTheirOwn", () => {
  assert.deepEqual(kindsOf([item("Checkpoint", 1), item("Novel", 1), item("Lost", 1), item("Phase", 0)]), [
    "Phase",
    "Lost",
    "Checkpoint",
    "Novel",
  ]);
});
