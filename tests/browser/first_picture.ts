// When a new user sees something of his run: first_picture PACELINE JOB_FILE FOLDER. It starts `paceline run --dashboard`, opens the printed address at
// once, goes to the run as soon as the list has it, and waits for a loss curve and a heat map that have steps in them. Prints one line of JSON:
// seconds behind the first applied step, by the chief's log.

import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium } from "playwright-core";

const LIMIT_MS = 120_000;
const [program, job, folder] = process.argv.slice(2) as [string, string, string];

async function firstStep(): Promise<number> {
  const end = Date.now() + LIMIT_MS;
  while (Date.now() < end) {
    try {
      const logs = join(folder, "runs", readdirSync(join(folder, "runs"))[0]!, "logs");
      const chief = readdirSync(logs).find((name) => name.includes("-chief-0"))!;
      const line = readFileSync(join(logs, chief), "utf8")
        .split("\n")
        .find((each) => each.includes("first step applied"));
      if (line !== undefined) return Date.now();
    } catch {
      // it has not written yet
    }
    await sleep(10);
  }
  throw new Error("no step is applied");
}

const browser = await chromium.launch({ executablePath: process.env["PACELINE_CHROMIUM"]!, args: ["--no-sandbox"] });
const run = spawn(program, ["run", job, "--dashboard", "--output", "json", "--state-dir", folder], {
  stdio: ["ignore", "pipe", "inherit"],
});
try {
  const address = new Promise<string>((resolve, reject) => {
    createInterface({ input: run.stdout! }).on("line", (line) => {
      const found = /http:\/\/\S+#token=\w+/.exec(line);
      if (found) resolve(found[0]);
    });
    run.on("exit", (code) => reject(new Error(`the run ends with ${code}`)));
  });
  const applied = firstStep();
  const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
  await page.goto(await address);
  await page.locator(".table-body .row a").first().click({ timeout: LIMIT_MS });
  const seen = async (words: string, selector: string) => {
    const answer = page.waitForResponse(
      async (each) => each.url().includes(words) && ((await each.json()).steps ?? (await each.json()).step).length > 0,
      {
        timeout: LIMIT_MS,
      },
    );
    await answer;
    await page.locator(selector).first().waitFor({ timeout: LIMIT_MS });
    return Date.now();
  };
  const [curve, heat] = await Promise.all([seen("/series", ".chart canvas"), seen("/heatmap", ".heat canvas")]);
  const begin = await applied;
  console.log(JSON.stringify({ curveSeconds: (curve - begin) / 1000, heatMapSeconds: (heat - begin) / 1000 }));
} finally {
  run.removeAllListeners("exit");
  run.kill("SIGINT");
  await browser.close();
}
