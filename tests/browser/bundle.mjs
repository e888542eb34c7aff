// Bundles the programs of this folder and the page's unit tests for node: `node bundle.mjs OUTPUT_FOLDER FILE...`

import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const require = createRequire(fileURLToPath(new URL("../../dashboard/package.json", import.meta.url)));
const { build } = require("esbuild");
const [outdir, ...entryPoints] = process.argv.slice(2);
await build({
  entryPoints,
  outdir,
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node18",
  outExtension: { ".js": ".mjs" },
  sourcemap: "inline",
  external: ["playwright-core", "axe-core"],
  logLevel: "warning",
  entryNames: "[name]",
});
