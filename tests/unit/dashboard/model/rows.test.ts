import assert from "node:assert/strict";
import { test } from "node:test";
import type { Row } from "../../../../dashboard/src/api/types.ts";
import { applyDelta, fromList } from "../../../../dashboard/src/model/jobs.ts";
import {
  countRows,
  DEFAULT_QUERY,
  holdOrder,
  needsLook,
  note,
  selectRows,
  visibleRange,
  type Query,
} from "../../../../dashboard/src/model/rows.ts";

const row = (name: string, more: Partial<Row> = {}): Row => ({ namespace: "a", name, uid: name, phase: "Running", ...more });
const names = (rows: Row[]) => rows.map((each) => each.name);
const query = (more: Partial<Query>): Query => ({ ...DEFAULT_QUERY, ...more });

test("EachWordOfTheSearchIsFoundSomewhere", () => {
  const rows = [row("gpt-1", { model: "gpt" }), row("resnet", { model: "cnn", reason: "NodeLost" }), row("gpt-2", { namespace: "b" })];
  assert.deepEqual(names(selectRows(rows, query({ text: "GPT", sort: "name", descending: false }))), ["gpt-1", "gpt-2"]);
  assert.deepEqual(names(selectRows(rows, query({ text: "cnn nodelost" }))), ["resnet"]);
  assert.deepEqual(names(selectRows(rows, query({ text: "b/gpt" }))), ["gpt-2"]);
  assert.deepEqual(names(selectRows(rows, query({ text: "gpt cnn" }))), []);
});

test("FiltersNarrowTogether", () => {
  const rows = [row("a1", { phase: "Failed" }), row("a2", { stragglers: 1 }), row("b1", { namespace: "b", phase: "Failed" }), row("a3")];
  assert.deepEqual(names(selectRows(rows, query({ phases: new Set(["Failed"]), namespace: "a" }))), ["a1"]);
  assert.deepEqual(names(selectRows(rows, query({ attention: true }))).sort(), ["a1", "a2", "b1"]);
});

test("UnknownValuesComeLastInEitherDirection", () => {
  const rows = [row("none"), row("low", { loss: 1 }), row("high", { loss: 2 })];
  assert.deepEqual(names(selectRows(rows, query({ sort: "loss", descending: false }))), ["low", "high", "none"]);
  assert.deepEqual(names(selectRows(rows, query({ sort: "loss", descending: true }))), ["high", "low", "none"]);
});

test("NamesSortByTheirNumbers", () => {
  const rows = [row("run-10"), row("run-9"), row("run-1")];
  assert.deepEqual(names(selectRows(rows, query({ sort: "name", descending: false }))), ["run-1", "run-9", "run-10"]);
});

test("HeldOrderKeepsRowsAndAppendsNewcomers", () => {
  const rows = [row("new"), row("b"), row("a")];
  assert.deepEqual(names(holdOrder(rows, ["a", "gone", "b"])), ["a", "b", "new"]);
});

test("DeltaReplacesAddsAndRemoves", () => {
  const jobs = fromList({ version: "1", jobs: [row("a"), row("b"), row("c")] });
  const before = jobs.get("a");
  applyDelta(jobs, { version: "2", full: false, rows: [row("b", { step: 5 }), row("d")], removed: ["c", "never"] });
  assert.deepEqual([...jobs.keys()].sort(), ["a", "b", "d"]);
  assert.equal(jobs.get("a"), before);
  assert.equal(jobs.get("b")?.step, 5);
  applyDelta(jobs, { version: "3", full: true, rows: [row("z")] });
  assert.deepEqual([...jobs.keys()], ["z"]);
});

test("CountsAreOfAllJobs", () => {
  const counts = countRows([row("a"), row("b", { phase: "Failed", namespace: "n10" }), row("c", { namespace: "n9" })]);
  assert.equal(counts.all, 3);
  assert.equal(counts.attention, 1);
  assert.equal(counts.phases.get("Running"), 2);
  assert.deepEqual(counts.namespaces, ["a", "n9", "n10"]);
});

test("NoteSaysTheStragglerOrTheReason", () => {
  assert.equal(note(row("a", { stragglers: 1, stragglerText: "worker-1 is slow" })), "worker-1 is slow");
  assert.equal(note(row("a", { phase: "Failed", reason: "MemberExited" })), "MemberExited");
  assert.equal(note(row("a", { reason: "Training" })), "");
  assert.equal(needsLook(row("a", { phase: "Succeeded", stragglers: 1 })), false);
  const stale = row("a", { warning: "its owner is stopped", stragglers: 1 });
  assert.equal(note(stale), "its owner is stopped");
  assert.equal(needsLook(stale), true);
});

test("VisibleRangeStaysWithinTheRows", () => {
  assert.deepEqual(visibleRange(0, 340, 34, 1000), { first: 0, last: 16 });
  assert.deepEqual(visibleRange(3400, 340, 34, 1000), { first: 94, last: 116 });
  assert.deepEqual(visibleRange(99_999, 340, 34, 10), { first: 4, last: 10 });
  assert.deepEqual(visibleRange(0, 340, 34, 0), { first: 0, last: 0 });
});
