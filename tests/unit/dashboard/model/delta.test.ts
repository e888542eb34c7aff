import assert from "node:assert/strict";
import { test } from "node:test";
import type { Row } from "../../../../dashboard/src/api/types.ts";
import { betterTime, deltaOf } from "../../../../dashboard/src/model/delta.ts";

test("DifferenceSaysWhichIsBetter", () => {
  assert.deepEqual(deltaOf(2, 1, "less"), { text: "-50.0 %", verdict: "better" });
  assert.deepEqual(deltaOf(2, 3, "less"), { text: "+50.0 %", verdict: "worse" });
  assert.deepEqual(deltaOf(2, 3, "neither"), { text: "+50.0 %", verdict: "" });
  assert.deepEqual(deltaOf(1000, 1000.5, "more"), { text: "+0.1 %", verdict: "" });
  assert.deepEqual(deltaOf(undefined, 1, "more"), { text: "", verdict: "" });
  assert.deepEqual(deltaOf(0, 1, "more"), { text: "", verdict: "" });
});

test("LongerTimeIsWorseOnlyOfRunsThatAreOver", () => {
  const row = (finished?: string): Row => ({ namespace: "a", name: "b", uid: "c", phase: "Running", ...(finished ? { finished } : {}) });
  const [over, open] = [row("2026-01-01T00:00:00Z"), row()];
  assert.equal(betterTime(over, over), "less");
  assert.equal(betterTime(over, open), "neither");
  assert.equal(betterTime(open, over), "neither");
  assert.equal(betterTime(open, open), "neither");
});
