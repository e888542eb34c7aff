// Measures the page with a thousand jobs that all change: its weight, its first paint, and how much of the time its main thread is busy.
// Prints one line of JSON. The mock runs in this process, so that its work is not counted.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { chromium, type CDPSession, type Page } from "playwright-core";
import { MockServer } from "./mock/server.ts";
import { bigWorld, HEADLINE, storyWorld, type World } from "./mock/world.ts";

const folder = process.env["PACELINE_PAGE"]!;
const SECONDS = 20;

async function busyShare(session: CDPSession, page: Page, seconds: number): Promise<number> {
  const read = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    const value = (name: string) => metrics.find((each) => each.name === name)!.value;
    return { busy: value("TaskDuration"), at: value("Timestamp") };
  };
  const before = await read();
  await page.waitForTimeout(seconds * 1000);
  const after = await read();
  return (after.busy - before.busy) / (after.at - before.at);
}

async function onPage<T>(
  world: World,
  hash: string,
  interval: number,
  body: (page: Page, session: CDPSession, mock: MockServer) => Promise<T>,
): Promise<T> {
  const mock = new MockServer({ page: folder, world });
  mock.signedIn = true;
  await mock.start();
  const browser = await chromium.launch({ executablePath: process.env["PACELINE_CHROMIUM"]!, args: ["--no-sandbox"] });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, storageState: mock.browserState });
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "timeTicks" });
  await page.goto(mock.url + hash);
  if (interval > 0) mock.run(interval);
  try {
    return await body(page, session, mock);
  } finally {
    await browser.close();
    await mock.stop();
  }
}

async function paint(page: Page): Promise<{ firstPaintMs: number; rowsMs: number }> {
  await page.locator(".table-body .row").first().waitFor();
  return page.evaluate(() => ({
    firstPaintMs: performance.getEntriesByName("first-contentful-paint")[0]!.startTime,
    rowsMs: performance.now(),
  }));
}

const weight = readdirSync(folder).reduce((sum, file) => sum + gzipSync(readFileSync(join(folder, file)), { level: 9 }).length, 0);
const list = await onPage(bigWorld(1000), "", 1000, async (page, session) => ({
  ...(await paint(page)),
  busy: await busyShare(session, page, SECONDS),
}));
const frames = await onPage(bigWorld(1000), "", 1000, async (page) => {
  await page.locator(".table-body .row").first().waitFor();
  // Scrolls through all rows while they change, and keeps the longest time between two frames.
  return page.evaluate(async () => {
    const table = document.querySelector(".table")!;
    let longest = 0;
    let late = 0;
    let last = performance.now();
    for (let i = 0; i < 300; ++i) {
      await new Promise((done) => requestAnimationFrame(done));
      const now = performance.now();
      longest = Math.max(longest, now - last);
      if (now - last > 50) ++late;
      last = now;
      table.scrollTop += 100;
    }
    return { longestFrameMs: Math.round(longest), framesOver50Ms: late, frames: 300 };
  });
});
const job = await onPage(storyWorld(), `#/jobs/${HEADLINE.namespace}/${HEADLINE.name}`, 500, async (page, session) => {
  await page.locator(".heat canvas").first().waitFor();
  return busyShare(session, page, SECONDS);
});
console.log(
  JSON.stringify({
    compressedBytes: weight,
    firstPaintMs: Math.round(list.firstPaintMs),
    firstRowsMs: Math.round(list.rowsMs),
    mainThreadWith1000Jobs: Number(list.busy.toFixed(3)),
    ...frames,
    mainThreadOfAJobOf64Members: Number(job.toFixed(3)),
  }),
);
