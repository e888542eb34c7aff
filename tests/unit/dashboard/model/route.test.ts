import assert from "node:assert/strict";
import { test } from "node:test";
import { compareHref, isPast, jobHref, paramsOf, parseRoute, queryOf, rowHref, tokenIn } from "../../../../dashboard/src/model/route.ts";
import { DEFAULT_QUERY } from "../../../../dashboard/src/model/rows.ts";

test("AddressesOfViewsRoundTrip", () => {
  const href = jobHref("team a", "run/1?x", "logs", new URLSearchParams({ pod: "p-0" }));
  const route = parseRoute(href);
  assert.equal(route.view, "job");
  if (route.view !== "job") return;
  assert.deepEqual([route.namespace, route.name, route.tab, route.params.get("pod")], ["team a", "run/1?x", "logs", "p-0"]);
  assert.equal(parseRoute("").view, "jobs");
  assert.equal(parseRoute("#/").view, "jobs");
  assert.equal(parseRoute(compareHref("a/b", "c/d")).view, "compare");
});

test("DeletedJobsAreToldByTheirUid", () => {
  const row = { namespace: "a", name: "x", uid: "1-2", phase: "Stopped" } as const;
  const names = [row, { ...row, deleted: "2026-01-31T12:00:00Z" }].map((each) => {
    const route = parseRoute(rowHref(each));
    return route.view === "job" ? route.name : "";
  });
  assert.deepEqual(names, ["x", "x@1-2"]);
  assert.deepEqual(names.map(isPast), [false, true]);
});

test("AddressesThatAreNoneAreUnknown", () => {
  for (const hash of ["#/jobs", "#/jobs/a/b/nothing", "#/jobs/a/b/logs/c", "#/other", "#/jobs/%E0%A4%A/b/x"])
    assert.equal(parseRoute(hash).view, "unknown", hash);
});

test("QueryOfTheListRoundTrips", () => {
  const query = {
    text: "gpt two",
    phases: new Set(["Failed", "Running"] as const),
    attention: true,
    namespace: "a",
    deleted: true,
    sort: "loss",
    descending: true,
  } as const;
  assert.deepEqual(queryOf(paramsOf(query)), query);
  assert.equal(paramsOf(DEFAULT_QUERY).toString(), "");
  assert.deepEqual(queryOf(new URLSearchParams("sort=nothing&phase=Nope,Failed")), { ...DEFAULT_QUERY, phases: new Set(["Failed"]) });
});

test("OneTimeTokenIsFoundInTheAddress", () => {
  assert.equal(tokenIn("#token=abc%2B1"), "abc+1");
  assert.equal(tokenIn("#/jobs?token=abc"), null);
});
