// A picture of a live dashboard, some time after something has come to a page: watch URL TOKEN PAGE WORDS FILE [KIND ...]. Only the page's own stream
// changes it. A timeline is shown without events of these kinds.

import { chromium } from "playwright-core";

const LATER_MS = 12_000; // the figures of the new member follow within 10 s

const [url, token, path, words, file, ...hidden] = process.argv.slice(2) as [string, string, string, string, string, ...string[]];
const browser = await chromium.launch({
  executablePath: process.env["PACELINE_CHROMIUM"]!,
  args: ["--no-sandbox", "--force-color-profile=srgb"],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light", timezoneId: "UTC" });
const page = await context.newPage();
await page.goto(url);
await page.getByLabel("Token").fill(token);
await page.getByRole("button", { name: "Sign in" }).click();
await page.goto(url + path);
await page.getByText(words).first().waitFor({ timeout: 120_000 });
for (const kind of hidden) {
  const chip = page.getByRole("button", { name: kind, pressed: true });
  if ((await chip.count()) > 0) await chip.click();
}
await page.waitForTimeout(LATER_MS);
await page.screenshot({ path: file });
await browser.close();
