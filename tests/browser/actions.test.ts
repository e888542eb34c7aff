// What one can do to a job, and what happens where one may not.

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { browserTest, gone, seen, until } from "./harness.ts";

const HEADLINE = "#/jobs/research/gpt-medium-pretrain";
const KEY = "research/gpt-medium-pretrain";
const actions = (page: Page) => page.getByRole("group", { name: "Actions" });
const dialog = (page: Page) => page.getByRole("dialog");

async function ask(page: Page, name: string): Promise<void> {
  await actions(page).getByRole("button", { name }).click();
  await seen(dialog(page));
}

browserTest("SuspendAndResumeAskFirst", {}, async ({ page, mock, open }) => {
  await open(HEADLINE);
  await ask(page, "Suspend");
  assert.deepEqual(mock.acted, []);
  await dialog(page).getByRole("button", { name: "Suspend" }).click();
  await seen(page.getByText(`suspend of ${KEY} is under way`));
  await ask(page, "Resume");
  await dialog(page).getByRole("button", { name: "Resume" }).click();
  await until("both actions", () => mock.acted.length === 2);
  assert.deepEqual(mock.acted, [
    { job: KEY, action: "suspend", body: {} },
    { job: KEY, action: "resume", body: {} },
  ]);
});

browserTest("SuspensionThatLosesTheCheckpointsSaysSo", {}, async ({ page, mock, open }) => {
  const job = mock.world.jobs.get(KEY)!;
  job.step = 20_000;
  await open(HEADLINE);
  await ask(page, "Suspend");
  await seen(dialog(page).getByText("It goes on from there when it is resumed."));
  await page.keyboard.press("Escape");
  job.keeps = false;
  mock.world.touch(job);
  await page.reload();
  await ask(page, "Suspend");
  await seen(dialog(page).getByText(/It begins anew at step 0 when it is resumed: 20,000 steps are lost\./));
  await dialog(page).getByRole("button", { name: "Suspend" }).click();
  await ask(page, "Resume");
  await seen(dialog(page).getByText(/begins anew at step 0: its checkpoints went with its pods\./));
});

browserTest("ScaleTakesANumberWithinItsBounds", {}, async ({ page, mock, open }) => {
  await open(HEADLINE);
  await ask(page, "Scale");
  const number = dialog(page).getByLabel("Workers");
  const confirm = dialog(page).getByRole("button", { name: "Scale" });
  await number.fill("500");
  assert.equal(await confirm.isDisabled(), true);
  await number.fill("32");
  await confirm.click();
  await gone(dialog(page));
  assert.deepEqual(mock.acted, [{ job: KEY, action: "scale", body: { replicas: 32 } }]);
});

browserTest("CheckpointIsSavedNow", {}, async ({ page, mock, open }) => {
  await open(HEADLINE);
  await ask(page, "Checkpoint");
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await gone(dialog(page));
  assert.deepEqual(mock.acted, [{ job: KEY, action: "checkpoint", body: {} }]);
});

browserTest("SlowMemberIsReplacedFromItsNote", {}, async ({ page, mock, open }) => {
  await open(HEADLINE);
  await page.locator(".note-warning").getByRole("button", { name: "Replace" }).click();
  await dialog(page).getByRole("button", { name: "Replace" }).click();
  await gone(dialog(page));
  assert.deepEqual(mock.acted, [{ job: KEY, action: "replace", body: { member: "worker-36" } }]);
});

browserTest("AnyMemberIsReplacedFromTheTable", {}, async ({ page, mock, open }) => {
  await open(`${HEADLINE}/members`);
  await page.getByRole("button", { name: "Replace worker-2", exact: true }).click();
  await dialog(page).getByRole("button", { name: "Replace" }).click();
  await gone(dialog(page));
  assert.deepEqual(mock.acted, [{ job: KEY, action: "replace", body: { member: "worker-2" } }]);
});

browserTest("DeleteNeedsTheNameAndLeadsToTheList", {}, async ({ page, mock, open }) => {
  await open(HEADLINE);
  await ask(page, "Delete");
  const confirm = dialog(page).getByRole("button", { name: "Delete" });
  await page.keyboard.type("gpt-medium");
  assert.equal(await confirm.isDisabled(), true);
  await page.keyboard.type("-pretrain");
  await page.keyboard.press("Enter");
  await seen(page.getByRole("table", { name: "Jobs" }));
  await gone(page.getByTitle(KEY));
  assert.deepEqual(
    mock.acted.map((each) => each.action),
    ["delete"],
  );
});

browserTest("SuccessorOfTheJobThatWasShownStaysAsItIs", { failsRequests: true }, async ({ page, mock, open }) => {
  await open(HEADLINE);
  await ask(page, "Delete");
  const { story } = mock.world.jobs.get(KEY)!;
  mock.world.remove(KEY);
  const successor = mock.world.add({ ...story, seed: 99 });
  mock.publish();
  await page.keyboard.type("gpt-medium-pretrain");
  await page.keyboard.press("Enter");
  await seen(dialog(page).getByText("is another job by now"));
  await page.keyboard.press("Escape");
  await ask(page, "Suspend");
  await dialog(page).getByRole("button", { name: "Suspend" }).click();
  await gone(dialog(page));
  assert.deepEqual(
    mock.acted.map((each) => each.action),
    ["suspend"],
  );
  assert.equal(mock.world.jobs.get(KEY), successor);
});

browserTest("CancelAndEscapeDoNothing", {}, async ({ page, mock, open }) => {
  await open(HEADLINE);
  await ask(page, "Suspend");
  await dialog(page).getByRole("button", { name: "Cancel" }).click();
  await gone(dialog(page));
  await ask(page, "Suspend");
  await page.keyboard.press("Escape");
  await gone(dialog(page));
  assert.equal(
    await actions(page)
      .getByRole("button", { name: "Suspend" })
      .evaluate((element) => element === document.activeElement),
    true,
  );
  assert.deepEqual(mock.acted, []);
});

browserTest("ButtonThatIsNotAllowedSaysWhy", {}, async ({ page, mock, open }) => {
  mock.world.jobs.get(KEY)!.forbidden.set("suspend", "you may not update trainingjobs in research");
  await open(HEADLINE);
  const button = actions(page).getByRole("button", { name: "Suspend" });
  await seen(button);
  assert.equal(await button.getAttribute("aria-disabled"), "true");
  await button.focus();
  await seen(actions(page).getByText("you may not update trainingjobs in research"));
  await page.keyboard.press("Enter");
  assert.equal(await dialog(page).count(), 0);
  assert.deepEqual(mock.acted, []);
});

browserTest("ErrorOfAnActionIsShownWithItsHelp", { failsRequests: true }, async ({ page, mock, open }) => {
  mock.failures = [
    {
      path: /\/checkpoint$/,
      method: "POST",
      status: 409,
      code: "Conflict",
      message: "it saves already",
      help: "wait for the one under way",
    },
  ];
  await open(HEADLINE);
  await ask(page, "Checkpoint");
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await seen(dialog(page).getByText("wait for the one under way"));
  mock.failures = [];
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await gone(dialog(page));
});

browserTest("RequestSaysWhatBecomesOfIt", {}, async ({ page, mock, open }) => {
  const job = mock.world.jobs.get(KEY)!;
  const at = new Date(mock.world.now()).toISOString();
  job.requests = { checkpoint: { at, outcome: "UnderWay", message: "members save after the step under way" } };
  await open(HEADLINE);
  await seen(page.getByText("members save after the step under way"));
  job.requests = {
    checkpoint: { at, outcome: "Done", message: "the checkpoint of step 7 is written" },
    replace: { at, outcome: "Refused", message: "it has no worker-99" },
  };
  mock.world.touch(job);
  mock.publish();
  await seen(page.getByText("Replacement by request refused:"));
  await gone(page.getByText("members save after the step under way"));
  assert.equal(await page.getByText("is written").count(), 0);
});

browserTest("MemberThatMayNotBeReplacedSaysWhyInItsNote", {}, async ({ page, mock, open }) => {
  mock.world.jobs.get(KEY)!.forbidden.set("replace", "you may not update it");
  await open(HEADLINE);
  const button = page.locator(".note-warning").getByRole("button", { name: "Replace" });
  assert.equal(await button.getAttribute("aria-disabled"), "true");
  await button.click({ force: true });
  assert.equal(await dialog(page).count(), 0);
});

browserTest("ActionsAreEventsWithTheUsersName", {}, async ({ page, open }) => {
  await open(`${HEADLINE}/events`);
  await seen(page.getByText("the job's pods were made"));
  await ask(page, "Checkpoint");
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await seen(page.getByText("checkpoint by ada@example.org"));
});
