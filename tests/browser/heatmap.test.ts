// The heat map: what it says, what it looks like, and how one moves in it.

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { browserTest, gone, seen, until } from "./harness.ts";

const HEADLINE = "#/jobs/research/gpt-medium-pretrain";
const map = (page: Page) => page.getByRole("application", { name: /^Heat map of/ });

// The share of each row's pixels that are orange, from the canvas as it is drawn.
async function orangeRows(page: Page, rows: number): Promise<number[]> {
  await seen(map(page));
  return page.evaluate((count) => {
    const canvas = document.querySelector<HTMLCanvasElement>(".heat-box canvas")!;
    const scale = devicePixelRatio;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    const rowHeight = (height - 34 - 20) / count;
    const copy = document.createElement("canvas");
    copy.width = canvas.width;
    copy.height = canvas.height;
    const context = copy.getContext("2d", { willReadFrequently: true })!;
    context.drawImage(canvas, 0, 0);
    return Array.from({ length: count }, (_, row) => {
      const y = Math.floor((34 + (row + 0.5) * rowHeight) * scale);
      const { data } = context.getImageData(Math.floor(132 * scale), y, Math.floor((width - 132 - 88) * scale), 1);
      let orange = 0;
      for (let i = 0; i < data.length; i += 4) if (data[i]! - data[i + 2]! > 80) ++orange;
      return orange / (data.length / 4);
    });
  }, rows);
}

browserTest("RankThatStaysSlowIsALine", {}, async ({ page, open }) => {
  await open(HEADLINE);
  await seen(page.getByText(/^Slow since step [\d,]+: rank 37 \(worker-36 on gpu-05\), 1\.7\d× the median\.$/));
  const rows = await orangeRows(page, 64);
  assert.ok(rows[37]! > 0.2);
  assert.ok(rows.every((share, row) => row === 37 || share < 0.01));
});

browserTest("RankThatRotatesIsManyShortDashes", {}, async ({ page, open }) => {
  await open("#/jobs/vision/resnet50-sweep-07");
  await seen(page.getByText(/^The slow rank rotates: 32 ranks in turn/));
  const rows = await orangeRows(page, 32);
  assert.ok(rows.every((share) => share > 0.005 && share < 0.1));
});

browserTest("SingleHiccupIsOneDot", {}, async ({ page, open }) => {
  await open("#/jobs/research/tokenizer-ablation");
  await seen(page.getByText(/^A hiccup: rank 12 \(worker-11 on gpu-02\), 4\.\d\d× the median at steps? [\d,]+/));
  const rows = await orangeRows(page, 64);
  assert.ok(rows[12]! > 0 && rows[12]! < 0.02);
  assert.ok(rows.every((share, row) => row === 12 || share === 0));
});

browserTest("PointerReadsACellOut", {}, async ({ page, open }) => {
  await open(HEADLINE);
  await seen(map(page));
  await seen(page.locator(".chart canvas"));
  await seen(page.getByText("in 2 min 6 s"));
  const box = (await map(page).boundingBox())!;
  await map(page).hover({ position: { x: box.width * 0.8, y: 34 + 37.5 * ((box.height - 54) / 64) } });
  const readOut = page.locator(".heat-read");
  await seen(readOut.getByText("rank 37 (worker-36 on gpu-05)"));
  await seen(readOut.getByText(/× the median of/));
  await seen(readOut.getByText(/compute \d+\.\d · transfer/));
});

browserTest("KeyboardReadsCellsOutAndZooms", {}, async ({ page, open }) => {
  await open(HEADLINE);
  await map(page).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  const spoken = page.locator(".heat [aria-live]");
  await until("the words", async () =>
    /^steps 0 to \d+, rank 1 \(worker-0 on gpu-01\): [\d.]+ milliseconds/.test((await spoken.textContent()) ?? ""),
  );
  await page.keyboard.press("Enter");
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("Enter");
  await until("the range in the address", () => /steps=0-\d+/.test(page.url()));
  await seen(page.getByRole("button", { name: "Zoom back" }));
  await map(page).focus();
  await page.keyboard.press("Escape");
  await gone(page.getByRole("button", { name: "Zoom back" }));
  assert.doesNotMatch(page.url(), /steps=/);
});

browserTest("DragZoomsInAndBackStepsOut", {}, async ({ page, open }) => {
  await open(HEADLINE);
  await seen(map(page));
  await seen(page.locator(".chart canvas"));
  await map(page).scrollIntoViewIfNeeded();
  const box = (await map(page).boundingBox())!;
  const drag = async (from: number, to: number) => {
    await page.mouse.move(box.x + box.width * from, box.y + 200);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * to, box.y + 210, { steps: 4 });
    await page.mouse.up();
  };
  await drag(0.4, 0.6);
  await until("the first range", () => /steps=\d+-\d+/.test(page.url()));
  const first = page.url();
  await until("the zoomed map", async () => !/steps 0 to/.test((await map(page).getAttribute("aria-label")) ?? ""));
  await drag(0.3, 0.5);
  await until("the second range", () => page.url() !== first);
  await page.getByRole("button", { name: "Zoom back" }).click();
  await until("the first range again", () => page.url() === first);
  await page.reload();
  await seen(page.getByRole("button", { name: "Zoom back" }));
});

browserTest("PartColoursAndOrderStandInTheAddress", {}, async ({ page, open }) => {
  await open(HEADLINE);
  await page.getByLabel("Show").selectOption("wait");
  await page.getByRole("button", { name: "ms", exact: true }).click();
  await page.getByLabel("Rows by").selectOption("slowest");
  await until("all in the address", () => /part=wait/.test(page.url()) && /color=ms/.test(page.url()) && /rows=slowest/.test(page.url()));
  await page.reload();
  await seen(page.getByRole("application", { name: /^Heat map of wait/ }));
  await page.getByLabel("Show").selectOption("own");
  await page.getByText("As a table").click();
  const first = page.getByRole("region", { name: "Ranks of the heat map" }).locator("tbody tr").first();
  await seen(first.getByText("worker-36"));
});
