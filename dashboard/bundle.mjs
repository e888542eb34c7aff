// Makes the page of its sources: `node bundle.mjs OUTPUT_FOLDER`. The same sources give the same bytes.

import { build } from "esbuild";
import { copyFileSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const output = process.argv[2];
if (!output) {
  console.error("bundle.mjs: say where the page goes: node bundle.mjs OUTPUT_FOLDER");
  process.exit(2);
}
mkdirSync(output, { recursive: true });
await build({
  entryPoints: [
    { in: join(here, "src/main.tsx"), out: "app" },
    { in: join(here, "src/style/all.css"), out: "app" },
  ],
  outdir: resolve(output),
  absWorkingDir: here,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2021", "chrome100", "firefox100", "safari15.4"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
});
copyFileSync(join(here, "index.html"), join(resolve(output), "index.html"));
