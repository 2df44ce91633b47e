/** @file Plans of built-in programs to look at: the pages that `tidemark view --html` writes, with a way to the others and back. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The first is what the navigation leads to. */
export const PROGRAMS = ["cnn", "lstm", "mlp"];

const STYLE =
  "<style>.site{display:flex;flex-wrap:wrap;gap:4px 16px;padding:8px 14px;font:14px system-ui,sans-serif}" +
  ".site a{color:inherit}.site a[aria-current]{font-weight:600;text-decoration:none}</style>";

/** Links to the first page of the site and to the plans. */
function navigation(current) {
  const link = (name) =>
    `<a href="${name}.html"${name === current ? ' aria-current="page"' : ""}>plan of <code>${name}</code></a>`;
  return `${STYLE}<nav class="site" aria-label="Site"><a href="../index.html">Tidemark</a> ${PROGRAMS.map(link).join(" ")}</nav>`;
}

export function writeViews(root, folder) {
  mkdirSync(folder, { recursive: true });
  for (const name of PROGRAMS) {
    const file = join(folder, `${name}.html`);
    const words = [join(root, "bin", "tidemark.js"), "view", name, "--html", file];
    execFileSync(process.execPath, words, { stdio: ["ignore", "ignore", "inherit"] });
    writeFileSync(file, readFileSync(file, "utf8").replace("<body>\n", `<body>\n${navigation(name)}\n`));
  }
}
