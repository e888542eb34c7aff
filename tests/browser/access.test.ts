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

// A page is opened once, and then changes its colours: most of a test's time goes into opening it. Nothing moves meanwhile.
const STILL = { context: { reducedMotion: "reduce" as const } };
async function isAccessible(page: Page): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.waitForFunction((theme) => document.documentElement.dataset["theme"] === theme, colorScheme);
    assert.deepEqual(await findings(page), [], colorScheme);
  }
}

for (const [name, hash, ready] of VIEWS) {
  browserTest(`${name}IsAccessibleInBothThemes`, STILL, async ({ page, open }) => {
    await open(hash);
    await ready(page);
    await isAccessible(page);
  });
}

browserTest("DialogIsAccessibleInBothThemes", STILL, async ({ page, open }) => {
  await open(JOB);
  await page.getByRole("button", { name: "Delete" }).click();
  await seen(page.getByRole("dialog"));
  await isAccessible(page);
});

browserTest("SignInIsAccessibleInBothThemes", { ...STILL, signedIn: false, failsRequests: true }, async ({ page, open }) => {
  await open("#token=wrong");
  await seen(page.getByRole("alert"));
  await isAccessible(page);
});

browserTest(
  "EmptyAndLostStatesAreAccessibleInBothThemes",
  { ...STILL, world: () => new World(), failsRequests: true, mock: { place: "Local" } },
  async ({ page, mock, open }) => {
    await page.clock.install();
    await open("");
    await seen(page.getByText("No jobs yet"));
    await isAccessible(page);
    await mock.stop();
    await seen(page.getByText("Connection lost."));
    await isAccessible(page);
    await page.clock.fastForward(6000);
    await seen(page.getByText("The server of this page has ended"));
    await isAccessible(page);
  },
);

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
