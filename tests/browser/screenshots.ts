// Makes the pictures of docs/dashboard.md: screenshots FOLDER.

import { join } from "node:path";
import { chromium, type Page } from "playwright-core";
import { MockServer } from "./mock/server.ts";
import { storyWorld } from "./mock/world.ts";

const [folder = "docs"] = process.argv.slice(2);
const NOW = Date.parse("2026-11-28T21:30:00Z");
const world = storyWorld(() => NOW);
const mock = new MockServer({ page: process.env["PACELINE_PAGE"]!, world });
mock.signedIn = true;
await mock.start();
const browser = await chromium.launch({
  executablePath: process.env["PACELINE_CHROMIUM"]!,
  args: ["--no-sandbox", "--force-color-profile=srgb"],
});

async function picture(
  name: string,
  hash: string,
  colorScheme: "light" | "dark",
  height: number,
  ready: (page: Page) => Promise<void>,
): Promise<void> {
  const context = await browser.newContext({
    viewport: { width: 1280, height },
    colorScheme,
    timezoneId: "UTC",
    storageState: mock.browserState,
  });
  const page = await context.newPage();
  await page.clock.setFixedTime(NOW);
  await page.goto(mock.url + hash);
  await ready(page);
  await page.screenshot({ path: join(folder, `dashboard-${name}.png`) });
  await context.close();
}

const JOB = "#/jobs/research/gpt-medium-pretrain";
const drawn = async (page: Page) => {
  await page.locator(".chart canvas").nth(3).waitFor();
  await page.getByRole("application").waitFor();
};
await picture("jobs", "", "light", 640, (page) => page.getByRole("table", { name: "Jobs" }).waitFor());
await picture("job", JOB, "light", 1240, drawn);
await picture("rotating", "#/jobs/vision/resnet50-sweep-07", "dark", 1120, drawn);
await picture("timeline", `${JOB}/timeline`, "light", 760, (page) => page.locator(".happenings").waitFor());
await browser.close();
await mock.stop();
