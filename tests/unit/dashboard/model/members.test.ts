import assert from "node:assert/strict";
import { test } from "node:test";
import { barShares, byRank, gpuErrors, memberName, membersOf, totalMs } from "../../../../dashboard/src/model/members.ts";

test("RanksComeFirst", () => {
  const members = [
    { role: "ps", index: 0, rank: -1 },
    { role: "worker", index: 1, rank: 2 },
    { role: "chief", index: 0, rank: 0 },
  ];
  assert.deepEqual(byRank(members).map(memberName), ["chief-0", "worker-1", "ps-0"]);
});

test("RolesHaveTheirUsualOrder", () => {
  const members = ["evaluator", "ps", "worker", "chief"].map((role) => ({ role, index: 0, rank: -1 }));
  assert.deepEqual(byRank(members).map(memberName), ["chief-0", "worker-0", "ps-0", "evaluator-0"]);
});

test("MembersAreThoseThatTheRunItselfKnows", () => {
  const member = (step: number) => ({ role: "worker", index: 0, rank: 0, step });
  assert.deepEqual(membersOf({ status: { members: [member(3)] } }), [member(3)]);
  assert.deepEqual(membersOf({ status: { members: [member(3)], run: { members: [member(4)] } } }), [member(4)]);
  assert.deepEqual(membersOf({}), []);
});

test("BarsAreSharesOfTheLongestStep", () => {
  const member = { role: "worker", index: 0, rank: 0, inputMs: 10, computeMs: 40, waitMs: 0 };
  assert.equal(totalMs(member), 50);
  assert.deepEqual(barShares(member, 100), [
    { part: "input", share: 0.1 },
    { part: "compute", share: 0.4 },
  ]);
  assert.deepEqual(barShares(member, 0), []);
});

test("ErrorsOfAGpuAreCounted", () => {
  assert.equal(gpuErrors({ xids: 1, lastXid: 79 }), "1 Xid (79)");
  assert.equal(gpuErrors({}), "");
});
