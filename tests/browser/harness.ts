// What every browser test stands on: a mock server with a world of its own, a fresh page in Chromium, and in the end nothing in the console, nothing
// that the Content-Security-Policy refused, and no request to anybody else.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, test } from "node:test";
import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page } from "playwright-core";
import { MockServer, type MockOptions } from "./mock/server.ts";
import { storyWorld, type World } from "./mock/world.ts";

const PAGE = process.env["PACELINE_PAGE"] ?? "";
const CHROMIUM = process.env["PACELINE_CHROMIUM"] ?? "/usr/bin/chromium";
const PATIENCE = 15_000;

let browser: Promise<Browser> | null = null;
export function launch(): Promise<Browser> {
  browser ??= chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  return browser;
}
after(async () => (await browser)?.close());

export interface Options {
  world?: () => World;
  mock?: Partial<MockOptions>;
  context?: BrowserContextOptions;
  signedIn?: boolean; // else the test signs in itself
  failsRequests?: boolean; // the browser notes answers that are errors, and streams that break
}

export interface Stage {
  page: Page;
  mock: MockServer;
  open(hash: string): Promise<void>;
}

export function browserTest(name: string, options: Options, body: (stage: Stage) => Promise<void>): void {
  test(name, { timeout: 120_000 }, async () => {
    const mock = new MockServer({ page: PAGE, world: (options.world ?? storyWorld)(), ...options.mock });
    mock.signedIn = options.signedIn !== false;
    await mock.start();
    const context = await (
      await launch()
    ).newContext({
      viewport: { width: 1440, height: 900 },
      timezoneId: "Europe/Berlin",
      ...(mock.signedIn ? { storageState: mock.browserState } : {}),
      ...options.context,
    });
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
    page.on("console", (message) => {
      if (message.type() !== "error" && message.type() !== "warning") return;
      if (options.failsRequests && /Failed to load resource|net::ERR/.test(message.text())) return;
      problems.push(`console: ${message.text()}`);
    });
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(mock.url) && !url.startsWith("data:") && !url.startsWith("blob:")) problems.push(`request to ${url}`);
    });
    await page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) =>
        console.error(`refused by the policy: ${event.violatedDirective} ${event.blockedURI}`),
      );
    });
    const open = async (hash: string) => {
      await page.goto(mock.url + hash);
    };
    try {
      await body({ page, mock, open });
      assert.deepEqual(problems, []);
    } finally {
      await context.close();
      await mock.stop();
    }
  });
}

// Until `check` holds; what it last said is in the error.
export async function until(what: string, check: () => Promise<boolean> | boolean): Promise<void> {
  const end = Date.now() + PATIENCE;
  while (!(await check())) {
    if (Date.now() > end) assert.fail(`${what} has not come within ${PATIENCE} ms`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

export async function seen(locator: Locator): Promise<void> {
  await locator.first().waitFor({ state: "visible" });
}

export async function gone(locator: Locator): Promise<void> {
  await locator.first().waitFor({ state: "detached" });
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// What axe-core finds, by rule and place.
export async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { axe: checker } = window as unknown as {
      axe: {
        run(
          node: Document,
          options: object,
        ): Promise<{ violations: { id: string; nodes: { target: string[]; failureSummary: string }[] }[] }>;
      };
    };
    const { violations } = await checker.run(document, { resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }) =>
      nodes.slice(0, 3).map((node) => `${id}: ${node.target.join(" ")}: ${node.failureSummary.split("\n")[1] ?? ""}`),
    );
  });
}
