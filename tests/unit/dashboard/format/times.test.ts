import assert from "node:assert/strict";
import { test } from "node:test";
import { ageText, clockTime, exactTime, parseTime, zoneName } from "../../../../dashboard/src/format/times.ts";

const AT = Date.parse("2026-11-28T22:34:57Z");

test("AgesAreThoseOfTheCommandLine", () => {
  const cases: [number, string][] = [
    [0, "0s"],
    [119, "119s"],
    [120, "2m"],
    [310, "5m10s"],
    [600, "10m"],
    [10_799, "179m"],
    [10_800, "3h"],
    [12_000, "3h20m"],
    [28_800, "8h"],
    [172_799, "47h"],
    [172_800, "2d"],
    [187_200, "2d4h"],
    [691_200, "8d"],
    [-5, "0s"],
  ];
  for (const [seconds, expected] of cases) assert.equal(ageText(AT - seconds * 1000, AT), expected, `${seconds} s`);
  assert.equal(ageText(null, AT), "-");
});

test("ExactTimesNameTheirZone", () => {
  assert.equal(exactTime(AT, "utc"), "2026-11-28 22:34:57 UTC");
  assert.equal(exactTime(AT, "local", "Europe/Berlin"), "2026-11-28 23:34:57 CET");
  assert.equal(exactTime(AT - 150 * 86_400_000, "local", "Europe/London"), "2026-07-01 23:34:57 BST");
  assert.equal(clockTime(AT, "local", "Asia/Kolkata"), "04:04:57");
  assert.equal(zoneName(AT, "utc"), "UTC");
});

test("TextThatIsNoTimeIsNone", () => {
  assert.equal(parseTime("2026-11-28T22:34:57Z"), AT);
  assert.equal(parseTime("soon"), null);
  assert.equal(parseTime(undefined), null);
});
