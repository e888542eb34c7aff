// For everybody: axe-core finds nothing in any view and theme, narrow screens fit, and choices of the system are kept.

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { browserTest, findings, seen } from "./harness.ts";
import { World } from "./mock/world.ts";

const JOB = "#/jobs/research/gpt-medium-pretrain";
const VIEWS: readonly (readonly [string, string, (page: Page) => Promise<void>])[] = [
  ["Jobs", "#/", (page) => seen(page.getByRole("table", { name: "Jobs" }))],
  ["NothingFound", "#/?q=nothing-like-it", (page) => seen(page.getByText("No job fits"))],
  [
    "Overview",
    JOB,
    async (page) => {
      await seen(page.getByRole("application"));
      await seen(page.locator(".chart canvas"));
      await seen(page.getByText("in 2 min 6 s"));
    },
  ],
  ["Members", `${JOB}/members`, (page) => seen(page.getByRole("row", { name: /worker-36/ }))],
  ["Timeline", `${JOB}/timeline`, (page) => seen(page.locator(".happenings"))],
  ["Events", "#/jobs/vision/segmentation-v2/events", (page) => seen(page.getByRole("row", { name: /MemberOutOfMemory/ }))],
  ["Logs", `${JOB}/logs`, (page) => seen(page.getByRole("log"))],
  ["Yaml", `${JOB}/yaml`, (page) => seen(page.getByLabel("The job's YAML"))],
  ["FailedJob", "#/jobs/vision/segmentation-v2", (page) => seen(page.getByText("worker-3: OutOfMemory"))],
  ["SuspendedJob", "#/jobs/research/lr-sweep-03", (page) => seen(page.getByRole("button", { name: "Resume" }))],
  ["Compare", "#/compare?a=research/gpt-small-baseline&b=research/gpt-small-wider", (page) => seen(page.locator(".chart canvas"))],
];

for (const colorScheme of ["light", "dark"] as const) {
  const theme = colorScheme === "light" ? "Light" : "Dark";
  for (const [name, hash, ready] of VIEWS) {
    browserTest(`${name}IsAccessibleIn${theme}`, { context: { colorScheme } }, async ({ page, open }) => {
      await open(hash);
      await ready(page);
      assert.deepEqual(await findings(page), []);
    });
  }
  browserTest(`DialogIsAccessibleIn${theme}`, { context: { colorScheme } }, async ({ page, open }) => {
    await open(JOB);
    await page.getByRole("button", { name: "Delete" }).click();
    await seen(page.getByRole("dialog"));
    assert.deepEqual(await findings(page), []);
  });
  browserTest(
    `SignInIsAccessibleIn${theme}`,
    { context: { colorScheme }, signedIn: false, failsRequests: true },
    async ({ page, open }) => {
      await open("#token=wrong");
      await seen(page.getByRole("alert"));
      assert.deepEqual(await findings(page), []);
    },
  );
  browserTest(
    `EmptyAndLostStatesAreAccessibleIn${theme}`,
    { context: { colorScheme }, world: () => new World(), failsRequests: true },
    async ({ page, mock, open }) => {
      await open("");
      await seen(page.getByText("No jobs yet"));
      assert.deepEqual(await findings(page), []);
      await mock.stop();
      await seen(page.getByText("Connection lost."));
      assert.deepEqual(await findings(page), []);
    },
  );
}

const NARROW = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
for (const [name, hash, ready] of VIEWS) {
  browserTest(`${name}FitsANarrowScreen`, { context: NARROW }, async ({ page, open }) => {
    await open(hash);
    await ready(page);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 360, `${width} pixels`);
    if (name === "Jobs") assert.deepEqual(await findings(page), []); // whose rows are laid out otherwise
  });
}

browserTest("ThemeIsTheSystemsUntilOneChooses", { context: { colorScheme: "dark" } }, async ({ page, open }) => {
  await open("");
  const theme = () => page.evaluate(() => document.documentElement.dataset["theme"]);
  await seen(page.getByRole("table", { name: "Jobs" }));
  assert.equal(await theme(), "dark");
  await page.getByRole("button", { name: /^Colours as the system's/ }).click();
  assert.equal(await theme(), "light");
  await page.reload();
  await seen(page.getByRole("table", { name: "Jobs" }));
  assert.equal(await theme(), "light");
});

browserTest("NothingMovesWhereLessMotionIsWanted", { context: { reducedMotion: "reduce" } }, async ({ page, open }) => {
  await open(`${JOB}/logs`);
  await seen(page.getByText("live", { exact: true }));
  const moving = await page.evaluate(() => document.getAnimations().filter((each) => each.playState === "running").length);
  assert.equal(moving, 0);
});

browserTest("FirstTabSkipsToTheContent", {}, async ({ page, open }) => {
  await open("");
  await seen(page.getByRole("table", { name: "Jobs" }));
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "main");
});
