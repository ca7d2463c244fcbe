// Builds the page into the package, or the folder that is named: its script and sheet of styles, those of the views, which the notebook's
// widget has alone, the HTML, and the licences of what is bundled.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const packaged = new URL("../src/stretto/studio/static/", import.meta.url).pathname;
const out = process.argv[2] ? `${process.argv[2]}/` : packaged;
if (out === packaged) rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const { metafile } = await build({
  absWorkingDir: new URL(".", import.meta.url).pathname,
  entryPoints: ["src/studio.js", "src/studio.css", "src/views.js", "src/views.css"],
  external: ["./views.js"], // the page loads it beside its own script
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  legalComments: "none",
  metafile: true,
});
copyFileSync(new URL("src/index.html", import.meta.url), `${out}index.html`);

const bundled = new Set(
  Object.keys(metafile.inputs)
    .filter((path) => path.startsWith("node_modules/"))
    .map((path) => path.split("/").slice(1, path.startsWith("node_modules/@") ? 3 : 2).join("/")),
);
const notices = [...bundled].sort().map((name) => {
  const folder = new URL(`node_modules/${name}/`, import.meta.url);
  const { version, license } = JSON.parse(readFileSync(new URL("package.json", folder), "utf-8"));
  for (const file of ["LICENSE", "LICENSE.md", "LICENCE"]) {
    try {
      return `${name} ${version}\n\n${readFileSync(new URL(file, folder), "utf-8").trim()}\n`;
    } catch {
      // it has another name
    }
  }
  return `${name} ${version}\n\n${license}\n`;
});
writeFileSync(`${out}LICENSES.txt`, notices.join(`\n${"-".repeat(72)}\n\n`));
