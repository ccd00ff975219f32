// Builds the page into the package: one script, one worker, one style sheet and the document.
import { build } from "esbuild";
import { copyFile, mkdir, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const page = here("../src/adjoin/explorer/page");

await rm(page, { recursive: true, force: true });
await mkdir(page, { recursive: true });
await build({
  entryPoints: {
    explorer: here("src/main.tsx"),
    "layout-worker": here("src/graph/layout-worker.ts"),
    style: here("src/style.css"),
  },
  outdir: page,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "inline",
  logLevel: "warning",
});
await copyFile(here("src/index.html"), `${page}/index.html`);
