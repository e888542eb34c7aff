// The list of jobs.

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { browserTest, gone, seen, until } from "./harness.ts";
import { bigWorld, HEADLINE } from "./mock/world.ts";

const names = (page: Page) =>
  page.locator(".table-body .c-name a").evaluateAll((links) => links.map((link) => link.getAttribute("title") ?? ""));
const job = (page: Page, name: string) => page.locator(".row", { has: page.getByTitle(name, { exact: true }) });

async function namesAre(page: Page, expected: string[]): Promise<void> {
  await until(`the list ${expected.join(", ")}`, async () => JSON.stringify(await names(page)) === JSON.stringify(expected));
}

browserTest("SlashSearchesAndTheAddressHoldsTheSearch", {}, async ({ page, open }) => {
  await open("");
  await seen(page.getByRole("table", { name: "Jobs" }));
  await page.keyboard.press("/");
  await page.keyboard.type("vision cnn 224");
  await namesAre(page, ["vision/vit-small-224"]);
  await page.reload();
  await namesAre(page, ["vision/vit-small-224"]);
  assert.match(page.url(), /q=vision/);
});

browserTest("ChipsNarrowByPhase", {}, async ({ page, open }) => {
  await open("");
  await page.getByRole("button", { name: /^Failed/ }).click();
  await namesAre(page, ["vision/segmentation-v2"]);
  await page.getByRole("button", { name: /^Suspended/ }).click();
  await namesAre(page, ["vision/segmentation-v2", "research/lr-sweep-03"]);
  await page.getByRole("button", { name: /^All/ }).click();
  await page.getByRole("button", { name: /^Needs a look/ }).click();
  await namesAre(page, ["ads/ranking-nightly", "vision/vit-small-224", "research/gpt-medium-pretrain", "vision/segmentation-v2"]);
});

browserTest("NamespaceNarrowsAndNothingLeftLeadsBack", {}, async ({ page, open }) => {
  await open("");
  await page.getByLabel("Namespace").selectOption("ads");
  await namesAre(page, ["ads/ranking-nightly", "ads/wide-deep-clicks", "ads/ctr-daily"]);
  await page.getByLabel("Search jobs").fill("nothing like it");
  await page.getByRole("button", { name: /^Show all/ }).click();
  await until("all jobs", async () => (await names(page)).length === 14);
});

browserTest("HeadersSortBothWays", {}, async ({ page, open }) => {
  await open("#/?ns=ads");
  await page.getByRole("button", { name: "Job", exact: true }).click();
  await namesAre(page, ["ads/ctr-daily", "ads/ranking-nightly", "ads/wide-deep-clicks"]);
  await page.getByRole("button", { name: "Job", exact: true }).click();
  await namesAre(page, ["ads/wide-deep-clicks", "ads/ranking-nightly", "ads/ctr-daily"]);
  assert.equal(await page.getByRole("columnheader", { name: "Job" }).getAttribute("aria-sort"), "descending");
  await page.getByRole("button", { name: "Loss", exact: true }).click();
  await namesAre(page, ["ads/wide-deep-clicks", "ads/ctr-daily", "ads/ranking-nightly"]);
});

browserTest("RowsSayWhatTheCommandLineSays", { mock: {} }, async ({ page, mock, open }) => {
  await open("");
  const headline = mock.world.jobs.get("research/gpt-medium-pretrain")!;
  headline.step = 20_000;
  mock.world.touch(headline);
  mock.publish();
  const row = job(page, "research/gpt-medium-pretrain");
  await seen(row.getByText("50 %"));
  const samples = headline.row(Date.now()).samplesPerSecond!;
  await seen(row.getByText(Math.trunc(samples).toLocaleString("en-US"), { exact: true }));
  await seen(row.getByText("99.4 %"));
  await seen(row.getByText(/worker-36 on gpu-05 takes 1.92 times/));
  await seen(row.getByText("64/64"));
});

browserTest("ChangesComeAndJobsComeAndGo", {}, async ({ page, mock, open }) => {
  await open("");
  await until("the stream", () => mock.listeners === 1);
  const story = mock.world.jobs.get("research/rlhf-reward")!.story;
  mock.world.add({ ...story, name: "brand-new", ageSeconds: 1 });
  mock.world.jobs.get("research/rlhf-reward")!.phase = "Failed";
  mock.world.touch(mock.world.jobs.get("research/rlhf-reward")!);
  mock.world.remove("vision/mnist-smoke");
  mock.publish();
  await seen(page.getByTitle("research/brand-new"));
  await seen(job(page, "research/rlhf-reward").getByText("Failed"));
  await gone(page.getByTitle("vision/mnist-smoke"));
  assert.equal((await names(page))[0], "research/brand-new");
});

browserTest("OrderHoldsWhileSomebodyPointsAtTheRows", {}, async ({ page, mock, open }) => {
  await open("#/?ns=research&phase=Running&sort=-progress");
  await namesAre(page, ["research/tokenizer-ablation", "research/gpt-medium-pretrain", "research/rlhf-reward"]);
  await until("the stream", () => mock.listeners === 1);
  await job(page, "research/rlhf-reward").hover();
  const last = mock.world.jobs.get("research/rlhf-reward")!;
  last.step = last.story.steps - 10;
  mock.world.touch(last);
  mock.publish();
  await seen(job(page, "research/rlhf-reward").getByText("100 %"));
  await namesAre(page, ["research/tokenizer-ablation", "research/gpt-medium-pretrain", "research/rlhf-reward"]);
  await page.mouse.move(400, 20);
  mock.world.touch(last);
  mock.publish();
  await namesAre(page, ["research/rlhf-reward", "research/tokenizer-ablation", "research/gpt-medium-pretrain"]);
});

browserTest("KeyboardReachesARowAndOpensIt", {}, async ({ page, open }) => {
  await open(`#/?q=${HEADLINE.name}`);
  await namesAre(page, [`${HEADLINE.namespace}/${HEADLINE.name}`]);
  await page.getByRole("table", { name: "Jobs" }).focus();
  const link = page.getByTitle(`${HEADLINE.namespace}/${HEADLINE.name}`);
  await until("the row's link", async () => {
    await page.keyboard.press("Tab");
    return link.evaluate((element) => element === document.activeElement);
  });
  await page.keyboard.press("Enter");
  await seen(page.getByRole("heading", { name: `${HEADLINE.namespace}/${HEADLINE.name}` }));
});

browserTest("JobsThatWereLeftOutAreNamed", {}, async ({ page, mock, open }) => {
  mock.world.leftOut = ["runs/x: damaged"];
  await open("");
  await page.getByText("1 left out").click();
  await seen(page.getByText("runs/x: damaged"));
  await until("the stream", () => mock.listeners === 1);
  mock.world.leftOut = ["runs/x: damaged", "runs/y: of a newer version"];
  mock.publish();
  await seen(page.getByText("2 left out"));
  await seen(page.getByText("runs/y: of a newer version"));
});

browserTest("ThousandJobsThatChangeAreDrawnByTheirWindow", { world: () => bigWorld(1000) }, async ({ page, mock, open }) => {
  await open("#/?sort=name");
  await seen(page.getByText("1,000"));
  await until("the stream", () => mock.listeners === 1);
  for (let round = 0; round < 5; ++round) {
    mock.world.advance(60);
    mock.publish();
  }
  const table = page.getByRole("table", { name: "Jobs" });
  assert.equal(await table.getAttribute("aria-rowcount"), "1001");
  assert.ok((await page.locator(".table-body .row").count()) < 60);
  const all = [...mock.world.jobs.keys()].sort(new Intl.Collator("en", { numeric: true }).compare);
  await table.evaluate((element) => {
    element.scrollTop = element.scrollHeight;
  });
  await seen(page.getByTitle(all[all.length - 1]!));
  const last = mock.world.jobs.get(all[all.length - 1]!)!;
  last.phase = "Failed";
  mock.world.touch(last);
  mock.publish();
  await seen(job(page, all[all.length - 1]!).getByText("Failed"));
  assert.ok((await page.locator(".table-body .row").count()) < 60);
});

browserTest("DeletedJobsAreListedWhereTheyAreAskedFor", { mock: { history: { kept: true } } }, async ({ page, mock, open }) => {
  const before = mock.world.jobs.get("vision/mnist-smoke")!;
  mock.world.remove("vision/mnist-smoke");
  await open("#/?ns=vision&q=mnist");
  const chip = page.getByRole("button", { name: /^Deleted/ });
  await seen(chip);
  assert.deepEqual(await names(page), []);
  await chip.click();
  await namesAre(page, ["vision/mnist-smoke"]);
  await seen(job(page, "vision/mnist-smoke").getByText("deleted", { exact: true }));
  assert.match(page.url(), /deleted=1/);
  await page.getByTitle("vision/mnist-smoke", { exact: true }).click();
  await seen(page.getByText("This is what the history has of it"));
  assert.match(page.url(), new RegExp(encodeURIComponent(`mnist-smoke@${before.uid}`)));
  await seen(page.getByText("Nothing: it was deleted."));
  const remove = page.getByRole("group", { name: "Actions" }).getByRole("button", { name: "Delete" });
  assert.equal(await remove.getAttribute("aria-disabled"), "true");
  await seen(page.getByRole("table", { name: /heat|own time/i }).or(page.locator("canvas")));
  assert.equal(mock.listeners, 0);
});

browserTest("JobThatIsDeletedIsInTheHistory", { mock: { history: { kept: true } } }, async ({ page, mock, open }) => {
  await open("#/jobs/vision/mnist-smoke");
  await until("the stream", () => mock.listeners === 1);
  await open("#/?deleted=1");
  await seen(page.getByTitle("vision/mnist-smoke", { exact: true }));
  await until("the list's stream", () => mock.listeners === 1);
  mock.world.remove("vision/mnist-smoke");
  mock.publish();
  await seen(job(page, "vision/mnist-smoke").getByText("deleted", { exact: true }));
});

const HELD = { kept: false, why: "another replica has the file /history/jobs.db" };
browserTest("HistoryOfAnotherReplicaIsSaid", { mock: { history: HELD }, failsRequests: true }, async ({ page, open }) => {
  await open("#/?deleted=1");
  await seen(page.getByText(/another replica has the file/));
  await seen(page.getByTitle("vision/mnist-smoke", { exact: true }));
});
