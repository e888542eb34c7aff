// One job's views.

import assert from "node:assert/strict";
import { browserTest, gone, seen, until } from "./harness.ts";
import { logLine, yamlOf } from "./mock/history.ts";

const HEADLINE = "#/jobs/research/gpt-medium-pretrain";

browserTest("HeadSaysHowFarAndWhoIsSlow", {}, async ({ page, mock, open }) => {
  const job = mock.world.jobs.get("research/gpt-medium-pretrain")!;
  job.step = 20_000;
  await open(HEADLINE);
  await seen(page.getByText("step 20,000/40,000"));
  await seen(page.getByText(/worker-36 on gpu-05 takes 1.92 times the others' 90.0 ms to compute/));
  assert.equal(
    await page
      .locator(".note-warning")
      .getByText(/HwThermalSlowdown/)
      .count(),
    1,
  );
  await seen(page.getByText("64 of 64"));
  assert.equal(await page.title(), "gpt-medium-pretrain · Paceline");
});

browserTest("HeadFollowsTheStream", {}, async ({ page, mock, open }) => {
  await open(HEADLINE);
  await until("the stream", () => mock.listeners === 1);
  const job = mock.world.jobs.get("research/gpt-medium-pretrain")!;
  job.step = 30_000;
  mock.world.touch(job);
  mock.publish();
  await seen(page.getByText("step 30,000/40,000"));
});

browserTest("FailedJobNamesTheFaultAndWhatToDo", {}, async ({ page, open }) => {
  await open("#/jobs/vision/segmentation-v2");
  await seen(page.getByText("worker-3: OutOfMemory"));
  await seen(page.getByText(/the kernel killed it: 32.0 GiB of 32.0 GiB/));
  assert.match(await page.locator(".note-error").innerText(), /microBatchSize\nlast lines of .*:\nstep 3410 .*\nstep 3411 /);
  await seen(page.getByText("As a consequence: worker-4"));
  await seen(page.getByText("its log: paceline logs segmentation-v2 worker/3 -n vision"));
});

browserTest("PodThatDoesNotStartIsSaidOnceAndWithWhatHelps", {}, async ({ page, open }) => {
  await open("#/jobs/ads/ranking-nightly");
  await seen(page.locator(".note-warning").getByText(/Unschedulable: worker-6 .* Insufficient nvidia.com\/gpu/));
  assert.equal(await page.getByText(/Insufficient nvidia.com/).count(), 1);
  await seen(page.getByRole("listitem").getByText(/^Unschedulable: .* add nodes/));
});

browserTest("CurvesAreDrawnAndSaidInWords", {}, async ({ page, open }) => {
  await open(HEADLINE);
  const loss = page.getByRole("img", { name: /^Loss over steps: training from/ });
  await seen(loss);
  assert.equal(await page.locator(".chart canvas").count(), 4);
  await page.getByRole("button", { name: "Time", exact: true }).click();
  await seen(page.getByRole("img", { name: /^Loss over time: training from/ }));
  assert.match(page.url(), /x=time/);
  await page.getByRole("button", { name: "Log", exact: true }).click();
  await until("the scale in the address", () => page.url().includes("scale=log"));
  assert.ok((await page.getByRole("table", { name: "Loss" }).getByRole("row").count()) > 5);
});

browserTest("CurvesShowTheValueUnderThePointer", {}, async ({ page, open }) => {
  await open(HEADLINE);
  const box = page.locator(".chart-box").first();
  await seen(box.locator("canvas"));
  await box.hover({ position: { x: 200, y: 60 } });
  await seen(
    page
      .locator(".chart figcaption")
      .first()
      .getByText(/^step [\d,]+$/),
  );
});

browserTest("MarksThatComeAfterTheCurvesAreDrawn", { failsRequests: true }, async ({ page, mock, open }) => {
  mock.failures = [{ path: /\/timeline$/, status: 503, code: "Unavailable", message: "not yet" }];
  await open("#/jobs/vision/segmentation-v2");
  const canvas = page.locator(".chart canvas").nth(2);
  await seen(canvas);
  const orange = () =>
    canvas.evaluate((element) => {
      const { width, height } = element as HTMLCanvasElement;
      const copy = Object.assign(document.createElement("canvas"), { width, height });
      const context = copy.getContext("2d", { willReadFrequently: true })!;
      context.drawImage(element as HTMLCanvasElement, 0, 0);
      const { data } = context.getImageData(0, 0, width, height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4) if (data[i]! - data[i + 2]! > 80) ++count;
      return count;
    });
  assert.equal(await orange(), 0);
  mock.failures = [];
  await until("the mark", async () => (await orange()) > 20);
});

browserTest("NewPointsComeByThemselves", {}, async ({ page, mock, open }) => {
  await open(HEADLINE);
  await until("the stream", () => mock.listeners === 1);
  const label = () => page.getByRole("img", { name: /^Loss over steps/ }).getAttribute("aria-label");
  await seen(page.getByRole("img", { name: /^Loss over steps/ }));
  const before = await label();
  const job = mock.world.jobs.get("research/gpt-medium-pretrain")!;
  job.step = 39_000;
  mock.world.touch(job);
  mock.publish();
  await until("another curve", async () => (await label()) !== before);
});

browserTest("WhatIsNextIsSaid", {}, async ({ page, open }) => {
  await open(HEADLINE);
  await seen(page.getByText(/worker-36 is replaced once its delay has cost more/));
  await seen(page.getByText("in 2 min 6 s"));
});

browserTest("MembersShowWhereTheirTimeGoes", {}, async ({ page, open }) => {
  await open(`${HEADLINE}/members`);
  const row = page.getByRole("row", { name: /worker-36/ });
  await seen(row.getByRole("img", { name: /compute 17\d\.\d ms/ }));
  await seen(row.getByText("HwThermalSlowdown"));
  await seen(row.getByText("gpu-05"));
  assert.equal(await page.locator(".members tbody tr").count(), 64);
  await seen(page.getByRole("row", { name: /worker-32/ }).getByText("1 Xid (63)"));
  await page.getByRole("link", { name: "Log of worker-36" }).click();
  await until("its log", async () => (await page.getByLabel("Member", { exact: true }).inputValue()) === "gpt-medium-pretrain-worker-36-0");
});

browserTest("ServersShowTheirLoadAndWorkersTheirStaleness", {}, async ({ page, open }) => {
  await open("#/jobs/ads/wide-deep-clicks/members");
  await seen(page.getByRole("row", { name: /ps-1/ }).getByText("queue 14"));
  await seen(page.getByRole("row", { name: /worker-3/ }).getByText(/stale \d\.\d\d/));
});

browserTest("TimelineTellsWhatHappened", {}, async ({ page, open }) => {
  await open(`${HEADLINE}/timeline`);
  await seen(page.getByRole("img", { name: /^Timeline of/ }));
  const list = page.locator(".happenings");
  await seen(list.getByText("worker-9 stopped answering"));
  await page.getByRole("button", { name: /^Lost/ }).click();
  await gone(list.getByText("worker-9 stopped answering"));
  await page.getByRole("button", { name: /^Lost/ }).click();
  await seen(list.getByText("worker-9 stopped answering"));
  assert.equal(await list.locator(".k-evaluation").count(), 0);
  await page.getByRole("button", { name: /^Evaluation/ }).click();
  await seen(
    list
      .locator(".k-evaluation")
      .first()
      .getByText(/^after \d/),
  );
  await page.locator(".k-lost .mark").hover();
  await seen(page.locator(".happening.chosen", { hasText: "worker-9 stopped answering" }));
});

browserTest("EventsNameTheirTimesInTheZoneThatIsChosen", {}, async ({ page, open }) => {
  await open("#/jobs/vision/segmentation-v2/events");
  await seen(page.getByRole("row", { name: /MemberOutOfMemory/ }));
  await seen(page.getByText(/\d\d:\d\d:\d\d (CET|CEST|GMT\+[12])/));
  await page.getByRole("button", { name: /^Time zone/ }).click();
  await seen(page.getByText(/\d\d:\d\d:\d\d UTC/));
  await page.reload();
  await seen(page.getByText(/\d\d:\d\d:\d\d UTC/));
});

browserTest("LogsTailSearchWrapAndPause", {}, async ({ page, mock, open }) => {
  await open(`${HEADLINE}/logs?member=worker-4`);
  const log = page.getByRole("log");
  await seen(log.getByText("step 11996", { exact: false }));
  const job = mock.world.jobs.get("research/gpt-medium-pretrain")!;
  mock.publish();
  await seen(log.getByText(logLine(job, 3000)));
  await page.getByRole("button", { name: "Pause" }).click();
  mock.publish();
  await seen(page.getByText("paused"));
  assert.equal(await log.getByText(logLine(job, 3001)).count(), 0);
  await page.getByRole("button", { name: "Go on" }).click();
  await seen(log.getByText(logLine(job, 3001)));
  await page.getByLabel("Search in the log").fill("link to worker-9");
  await seen(log.locator("mark").first());
  await page.getByLabel("Only these").check();
  await until("only these lines", async () => (await log.locator(".log-line").count()) < 60);
  await page.getByLabel("Wrap").check();
  await seen(page.locator(".log-wrap"));
  mock.logEnds = true;
  mock.publish();
  await seen(page.getByText("ended", { exact: true }));
});

browserTest("LogOfAMemberThatEndedIsReadOnce", {}, async ({ page, open }) => {
  await open("#/jobs/vision/segmentation-v2/logs");
  await seen(page.getByText("ended", { exact: true }));
  await page.getByLabel("Member", { exact: true }).selectOption({ index: 3 });
  await until("the pod in the address", () => page.url().includes("pod=segmentation-v2-worker-2-0"));
  await seen(page.getByRole("log").getByText("checkpoint of step", { exact: false }));
});

browserTest("LogThatCanNotBeReadSaysWhy", { failsRequests: true }, async ({ page, mock, open }) => {
  mock.failures = [
    {
      path: /\/logs\/[^/]+/,
      status: 403,
      code: "Forbidden",
      message: "you may not read the logs of vision",
      help: "ask for get on pods/log",
    },
  ];
  await open("#/jobs/vision/segmentation-v2/logs");
  await seen(page.getByText("ask for get on pods/log"));
});

browserTest("LogsOfAJobThatBeginsCome", {}, async ({ page, mock, open }) => {
  await open("#/jobs/research/long-context-8k/logs");
  await seen(page.getByRole("heading", { name: "No logs yet" }));
  await until("the stream", () => mock.listeners === 1);
  const job = mock.world.jobs.get("research/long-context-8k")!;
  job.phase = "Running";
  job.step = 1;
  mock.world.touch(job);
  mock.publish();
  await seen(page.getByRole("log"));
});

browserTest("LogOfAMemberGoesOnWithItsSuccessor", {}, async ({ page, mock, open }) => {
  const member = page.getByLabel("Member", { exact: true });
  await open(`${HEADLINE}/logs`);
  await seen(page.getByRole("log"));
  await member.selectOption({ index: 5 });
  await until("its log", async () => (await member.inputValue()) === "gpt-medium-pretrain-worker-4-0");
  await until("the stream", () => mock.listeners === 1);
  const job = mock.world.jobs.get("research/gpt-medium-pretrain")!;
  const logs = job.logs();
  const successor = { ...logs[5]!, pod: "gpt-medium-pretrain-worker-4-1", attempt: 1 };
  job.logs = () => [...logs.map((log, rank) => (rank === 5 ? { ...log, live: false } : log)), successor];
  mock.world.touch(job);
  mock.publish();
  await until("its successor", async () => (await member.locator("option").count()) === logs.length + 1);
  assert.equal(await member.inputValue(), "gpt-medium-pretrain-worker-4-0");
  job.logs = () => [...logs.filter((_, rank) => rank !== 5), successor];
  mock.world.touch(job);
  mock.publish();
  await until("the successor's log", async () => (await member.inputValue()) === successor.pod);
});

browserTest("YamlIsTheJobAsWritten", {}, async ({ page, mock, open }) => {
  await open(`${HEADLINE}/yaml`);
  const yaml = page.getByLabel("The job's YAML");
  await seen(yaml.getByText("action"));
  const job = mock.world.jobs.get("research/gpt-medium-pretrain")!;
  assert.equal((await yaml.innerText()).trimEnd(), yamlOf(job).trimEnd());
  job.workers = 40;
  mock.world.touch(job);
  mock.publish();
  await seen(yaml.getByText("39"));
});

browserTest("ProgramOfItsOwnShowsWhatItTells", {}, async ({ page, mock, open }) => {
  mock.world.jobs.get("research/gpt-medium-pretrain")!.own = "told";
  await open(HEADLINE);
  await seen(page.getByRole("img", { name: /^Steps\/s over steps/ }));
  assert.equal(await page.locator(".chart").count(), 1);
});

browserTest("ProgramOfItsOwnThatTellsNothingSaysSo", {}, async ({ page, mock, open }) => {
  mock.world.jobs.get("research/gpt-medium-pretrain")!.own = "silent";
  await open(HEADLINE);
  await seen(page.getByRole("heading", { name: "No steps yet" }));
  assert.equal(await page.locator(".chart").count(), 0);
});

browserTest("TwoJobsAreCompared", {}, async ({ page, open }) => {
  await open("#/compare");
  await page.getByLabel("First").selectOption("research/gpt-small-baseline");
  await page.getByLabel("Second").selectOption("research/gpt-small-wider");
  await seen(page.getByRole("img", { name: /^Loss over steps: gpt-small-baseline from .*; gpt-small-wider from/ }));
  await seen(page.getByRole("row", { name: /Time .* better/ }));
  await page.getByRole("button", { name: "Time", exact: true }).click();
  await page.reload();
  await seen(page.getByRole("img", { name: /^Loss over time: gpt-small-baseline/ }));
});

browserTest("JobWithoutMembersYetSaysSo", {}, async ({ page, open }) => {
  await open("#/jobs/research/long-context-8k");
  await seen(page.getByRole("heading", { name: "No step times yet" }));
  await page.getByRole("link", { name: "Members" }).click();
  await seen(page.getByRole("heading", { name: "No members yet" }));
  await page.getByRole("link", { name: "Logs" }).click();
  await seen(page.getByRole("heading", { name: "No logs yet" }));
});
