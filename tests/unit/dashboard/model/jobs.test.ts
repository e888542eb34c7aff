import assert from "node:assert/strict";
import { test } from "node:test";
import type { Row } from "../../../../dashboard/src/api/types.ts";
import { nothingNext } from "../../../../dashboard/src/model/jobs.ts";

test("DeletedOrEndedJobDoesNotGoOn", () => {
  const row: Row = { namespace: "a", name: "b", uid: "c", phase: "Running" };
  const now = "2026-01-01T00:00:00Z";
  assert.equal(nothingNext(row), "Nothing: it goes on as it is.");
  assert.equal(nothingNext({ ...row, finished: now }), "Nothing: it has ended.");
  assert.equal(nothingNext({ ...row, deleted: now }), "Nothing: it was deleted.");
  assert.equal(nothingNext({ ...row, finished: now, deleted: now }), "Nothing: it was deleted.");
});
