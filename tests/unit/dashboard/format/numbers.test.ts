import assert from "node:assert/strict";
import { test } from "node:test";
import * as text from "../../../../dashboard/src/format/numbers.ts";

// The same cases stand in tests/unit/cli/view and tests/unit/base for the C++ that prints them.
test("FixedRoundsTiesToEvenAsPrintfDoes", () => {
  const cases: [number, number, string][] = [
    [0.5, 0, "0"],
    [1.5, 0, "2"],
    [2.5, 0, "2"],
    [-2.5, 0, "-2"],
    [0.125, 2, "0.12"],
    [0.375, 2, "0.38"],
    [1.005, 2, "1.00"],
    [-0.001, 2, "0.00"],
    [97.115, 2, "97.11"],
    [1e21, 1, "1000000000000000000000.0"],
    [12, 0, "12"],
    [62.5, 0, "62"],
    [63.5, 0, "64"],
  ];
  for (const [value, decimals, expected] of cases) assert.equal(text.fixed(value, decimals), expected, `${value} with ${decimals}`);
});

test("LossHasFourDigitsOrAnExponent", () => {
  const cases: [number | null, string][] = [
    [0, "0.0000"],
    [2.302585, "2.3026"],
    [0.001, "0.0010"],
    [0.00012, "1.200e-04"],
    [1e6, "1.000e+06"],
    [-0.5, "-0.5000"],
    [null, "-"],
    [Infinity, "inf"],
  ];
  for (const [value, expected] of cases) assert.equal(text.lossText(value), expected);
});

test("SecondsHaveTheUnitsOfTheCommandLine", () => {
  const cases: [number | undefined, string][] = [
    [0, "0 s"],
    [0.00005, "50 us"],
    [0.0042, "4.2 ms"],
    [0.25, "250 ms"],
    [8, "8.0 s"],
    [59.94, "59.9 s"],
    [60, "1 min"],
    [200, "3 min 20 s"],
    [3600, "1 h"],
    [7500, "2 h 5 min"],
    [-1, "-"],
    [2e9, "-"],
    [undefined, "-"],
  ];
  for (const [value, expected] of cases) assert.equal(text.humanSeconds(value), expected, String(value));
});

test("SharesRatesAndCountsReadAsInDescribe", () => {
  assert.equal(text.accuracyText(0.97115), "97.11 %");
  assert.equal(text.goodputText(0.9814), "98.1 %");
  assert.equal(text.progressText(0.625), "62 %");
  assert.equal(text.aucText(0.77123), "0.7712");
  assert.equal(text.samplesPerSecond(12345.9), "12,345");
  assert.equal(text.samplesPerSecond(0.4), "-");
  assert.equal(text.withCommas(-1234567), "-1,234,567");
  assert.equal(text.withCommas(undefined), "-");
  assert.equal(text.ms(0), "-");
  assert.equal(text.ms(9.876), "9.88");
  assert.equal(text.ms(25.14), "25.1");
  assert.equal(text.humanBytes(1536), "1.5 KiB");
  assert.equal(text.humanBytes(900), "900 B");
});

test("AxisNumbersAreShort", () => {
  const cases: [number, string][] = [
    [0, "0"],
    [0.25, "0.25"],
    [5000, "5,000"],
    [12345.6, "12,346"],
    [0.00002, "2.0e-05"],
    [1234.5, "1,235"],
  ];
  for (const [value, expected] of cases) assert.equal(text.short(value), expected);
  assert.equal(text.shortPercent(0.255), "25.5 %");
});
