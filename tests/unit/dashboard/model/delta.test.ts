import assert from "node:assert/strict";
import { test } from "node:test";
import { deltaOf } from "../../../../dashboard/src/model/delta.ts";

test("DifferenceSaysWhichIsBetter", () => {
  assert.deepEqual(deltaOf(2, 1, "less"), { text: "-50.0 %", verdict: "better" });
  assert.deepEqual(deltaOf(2, 3, "less"), { text: "+50.0 %", verdict: "worse" });
  assert.deepEqual(deltaOf(2, 3, "neither"), { text: "+50.0 %", verdict: "" });
  assert.deepEqual(deltaOf(1000, 1000.5, "more"), { text: "+0.1 %", verdict: "" });
  assert.deepEqual(deltaOf(undefined, 1, "more"), { text: "", verdict: "" });
  assert.deepEqual(deltaOf(0, 1, "more"), { text: "", verdict: "" });
});
