// Signing in, and the states in which there is nothing else to show.

import assert from "node:assert/strict";
import { browserTest, gone, seen, until } from "./harness.ts";
import { World } from "./mock/world.ts";

browserTest("TokenOfTheAddressSignsInAndLeavesIt", { signedIn: false }, async ({ page, open }) => {
  await open("#token=one-time");
  await seen(page.getByRole("table", { name: "Jobs" }));
  assert.equal(new URL(page.url()).hash, "");
  await page.reload();
  await seen(page.getByRole("table", { name: "Jobs" }));
});

browserTest("TokenThatWasUsedIsRefusedWithHelp", { signedIn: false, failsRequests: true }, async ({ page, mock, open }) => {
  mock.tokens.clear();
  await open("#token=one-time");
  const alert = page.getByRole("alert");
  await seen(alert);
  assert.match((await alert.textContent()) ?? "", /prints another one/);
  mock.tokens.add("fresh");
  await page.getByLabel("Token").fill("fresh");
  await page.getByRole("button", { name: "Sign in" }).click();
  await seen(page.getByRole("table", { name: "Jobs" }));
});

browserTest(
  "BearerTokenIsSentWithEachRequestAndStream",
  { signedIn: false, failsRequests: true, mock: { bearer: "of-ada" } },
  async ({ page, mock, open }) => {
    await open("");
    await page.getByLabel("Token").fill("of-ada");
    await page.getByRole("button", { name: "Sign in" }).click();
    await seen(page.getByRole("table", { name: "Jobs" }));
    await until("the stream", () => mock.listeners === 1);
    assert.equal(await page.evaluate(() => sessionStorage.getItem("paceline.token")), "of-ada");
    assert.equal(await page.evaluate(() => localStorage.length), 0);
    await page.reload();
    await seen(page.getByRole("table", { name: "Jobs" }));
    mock.dropStreams();
    await until("a stream that goes on", () => mock.resumedFrom.length > 0);
    mock.options.bearer = "of-somebody-else";
    mock.dropStreams();
    await seen(page.getByRole("heading", { name: "Sign in" }));
    assert.equal(await page.evaluate(() => sessionStorage.getItem("paceline.token")), null);
  },
);

browserTest(
  "HeadOfAControllersPageNamesTheNamespace",
  { signedIn: false, mock: { bearer: "of-ada", namespaces: ["team-a"] } },
  async ({ page, open }) => {
    await open("");
    await page.getByLabel("Token").fill("of-ada");
    await page.getByRole("button", { name: "Sign in" }).click();
    await seen(page.getByRole("banner").getByText("namespace team-a", { exact: true }));
  },
);

browserTest("AddressIsKeptOverTheSignIn", { signedIn: false, failsRequests: true }, async ({ page, open }) => {
  await open("#/jobs/research/gpt-medium-pretrain/yaml");
  await page.getByLabel("Token").fill("one-time");
  await page.keyboard.press("Enter");
  await seen(page.getByLabel("The job's YAML"));
});

browserTest("SessionThatEndsAsksToSignInAgain", { failsRequests: true }, async ({ page, mock, open }) => {
  await open("");
  await seen(page.getByRole("table", { name: "Jobs" }));
  assert.equal(await page.evaluate(() => localStorage.getItem("paceline.csrf")), "mock-csrf");
  mock.signedIn = false;
  mock.dropStreams();
  await seen(page.getByRole("heading", { name: "Sign in" }));
  assert.equal(await page.evaluate(() => localStorage.getItem("paceline.csrf")), null);
});

browserTest("CookieWithoutTheWordAsksToSignIn", {}, async ({ page, mock, open }) => {
  await page.context().addInitScript(() => localStorage.clear());
  let asked = 0;
  page.on("request", (request) => {
    if (request.url().includes("/api/")) asked += 1;
  });
  await open("");
  await seen(page.getByRole("heading", { name: "Sign in" }));
  assert.equal(asked, 0);
  await page.getByLabel("Token").fill("one-time");
  await page.keyboard.press("Enter");
  await until("the stream", () => mock.listeners === 1);
});

browserTest("EmptyClusterSaysHowToBegin", { world: () => new World(), mock: { namespaces: ["team-a"] } }, async ({ page, open }) => {
  await open("");
  await seen(page.getByRole("heading", { name: "No jobs yet" }));
  await seen(page.getByText("team-a"));
});

browserTest("ForbiddenListSaysSo", { failsRequests: true }, async ({ page, mock, open }) => {
  mock.failures = [
    {
      path: /^\/(jobs|stream)$/,
      status: 403,
      code: "Forbidden",
      message: "you may not list jobs",
      help: "ask for a role that may get trainingjobs",
    },
  ];
  await open("");
  await seen(page.getByRole("heading", { name: "You may not see this" }));
  await seen(page.getByText("ask for a role that may get trainingjobs"));
});

browserTest("ErrorIsShownWithItsHelpUntilItHasPassed", { failsRequests: true }, async ({ page, mock, open }) => {
  mock.failures = [
    { path: /^\/(jobs|stream)$/, status: 503, code: "Unavailable", message: "the controller starts", help: "try again in a moment" },
  ];
  await open("");
  await seen(page.getByText("try again in a moment"));
  await seen(page.getByRole("button", { name: "Try again" }));
  mock.failures = [];
  await seen(page.getByRole("table", { name: "Jobs" }));
});

browserTest("ErrorOfAJobPassesByItself", { failsRequests: true }, async ({ page, mock, open }) => {
  mock.failures = [{ path: /heatmap$/, status: 503, code: "Unavailable", message: "the history is being read" }];
  await open("#/jobs/research/gpt-medium-pretrain");
  await seen(page.getByText("the history is being read"));
  mock.failures = [];
  await seen(page.getByRole("application", { name: /^Heat map/ }));
});

browserTest("TabThatNobodySeesLetsGoOfItsStream", {}, async ({ page, mock, open }) => {
  await page.clock.install();
  await open("");
  await until("the stream", () => mock.listeners === 1);
  const hide = (hidden: boolean) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await hide(true);
  await page.clock.fastForward(61_000);
  await until("no stream", () => mock.listeners === 0);
  mock.world.remove("vision/mnist-smoke");
  await hide(false);
  await until("another stream", () => mock.listeners === 1);
  await gone(page.getByTitle("vision/mnist-smoke"));
});

browserTest("LogThatComesBackRepeatsNothing", { failsRequests: true }, async ({ page, mock, open }) => {
  await open("#/jobs/research/gpt-medium-pretrain/logs");
  const lines = page.getByRole("log").locator(".log-line");
  await until("the log", async () => (await lines.count()) === 600);
  mock.dropStreams();
  await until("the stream's return", () => mock.logListeners === 1);
  mock.publish();
  await until("one line more", async () => (await lines.count()) === 601);
});

browserTest("JobThatIsNotThereLeadsBack", { failsRequests: true }, async ({ page, open }) => {
  await open("#/jobs/research/nothing");
  await seen(page.getByRole("heading", { name: "There is no job research/nothing" }));
  await page.getByRole("link", { name: "See all jobs" }).click();
  await seen(page.getByRole("table", { name: "Jobs" }));
});

browserTest("AddressThatIsNoneLeadsBack", {}, async ({ page, open }) => {
  await open("#/nowhere");
  await seen(page.getByRole("heading", { name: "There is no such page" }));
});

browserTest("DroppedStreamGoesOnAfterItsLastEvent", { failsRequests: true }, async ({ page, mock, open }) => {
  await open("");
  await until("the stream", () => mock.listeners === 1);
  mock.world.add({ ...mock.world.jobs.get("research/rlhf-reward")!.story, name: "brand-new" });
  mock.publish();
  await seen(page.getByTitle("research/brand-new"));
  mock.dropStreams();
  await until("the next stream", () => mock.resumedFrom.length > 0);
  assert.equal(mock.resumedFrom[0], String(mock.world.version));
  mock.world.remove("vision/mnist-smoke");
  mock.publish();
  await gone(page.getByTitle("vision/mnist-smoke"));
});

browserTest("ServerThatIsGoneShowsABannerUntilItIsBack", { failsRequests: true }, async ({ page, mock, open }) => {
  await open("");
  await until("the stream", () => mock.listeners === 1);
  await mock.stop();
  await seen(page.getByText("Connection lost."));
  mock.world.remove("vision/mnist-smoke");
  await mock.start();
  await gone(page.getByText("Connection lost."));
  await gone(page.getByTitle("vision/mnist-smoke"));
});

browserTest(
  "ServerOfThisMachineThatHasEndedSaysHowToOpenItAgain",
  { failsRequests: true, mock: { place: "Local" } },
  async ({ page, mock, open }) => {
    await page.clock.install();
    await open("");
    await until("the stream", () => mock.listeners === 1);
    await mock.stop();
    await seen(page.getByText("Connection lost."));
    await page.clock.fastForward(6000);
    await seen(page.getByText("The server of this page has ended"));
    await seen(page.getByText("paceline dashboard", { exact: true }));
    await gone(page.getByText("Connection lost."));
    await seen(page.getByRole("table", { name: "Jobs" }));
  },
);

browserTest("ServerThatIsNotThereYetIsWaitedFor", { failsRequests: true }, async ({ page, mock, open }) => {
  mock.failures = [{ path: /^\/session$/, status: 503, code: "Unavailable", message: "the server starts" }];
  await open("");
  await seen(page.getByText("the server starts"));
  mock.failures = [];
  await seen(page.getByRole("table", { name: "Jobs" }));
});
