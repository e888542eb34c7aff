import assert from "node:assert/strict";
import { test } from "node:test";
import { contrast, rawColor, relativeColor, relativePlace, type Rgb } from "../../../../dashboard/src/model/colors.ts";

const PANEL: Record<string, Rgb> = { light: [255, 255, 255], dark: [20, 24, 30] };

test("RatiosAroundTheMedianLookLikeTheBackground", () => {
  assert.equal(relativePlace(1), 0.4);
  assert.equal(relativePlace(1.04), 0.4);
  assert.equal(relativePlace(0.97), 0.4);
  assert.equal(relativePlace(3), 1);
  assert.equal(relativePlace(50), 1);
  assert.equal(relativePlace(0.5), 0);
});

test("EqualFactorsAreEqualDistances", () => {
  const step = relativePlace(1.2) - relativePlace(1.1);
  assert.ok(Math.abs(relativePlace(1.2 * (1.2 / 1.1)) - relativePlace(1.2) - step) < 1e-9);
});

// Contrast alone tells slow from usual: a person who sees no colours reads the same map.
test("SlowerMeansMoreContrastInBothThemes", () => {
  for (const dark of [false, true]) {
    const panel = PANEL[dark ? "dark" : "light"]!;
    let before = 0;
    for (const ratio of [1, 1.25, 1.5, 2, 2.5, 3]) {
      const now = contrast(relativeColor(ratio, dark), panel);
      assert.ok(now > before, `${ratio} ${dark}`);
      before = now;
    }
    assert.ok(contrast(relativeColor(2, dark), relativeColor(1, dark)) > 2);
  }
});

test("MoreMillisecondsMeanMoreContrast", () => {
  for (const dark of [false, true]) {
    const panel = PANEL[dark ? "dark" : "light"]!;
    const steps = [0, 0.25, 0.5, 0.75, 1].map((place) => contrast(rawColor(place, dark), panel));
    assert.deepEqual(
      steps,
      [...steps].sort((a, b) => a - b),
    );
  }
});
