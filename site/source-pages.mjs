/** @file Files of the repository as pages with numbered lines, for the links of documents and of the reference. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";

const escaped = (text) =>
  text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c] ?? c);

/** A page of its own, in the colours of the others. */
function pageHtml(path, body) {
  const up = "../".repeat(`source/${path}`.split("/").length - 1);
  return `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(path)} · Tidemark</title>
<link rel="icon" href="${up}assets/favicon.svg">
<link rel="stylesheet" href="${up}assets/style.css"><link rel="stylesheet" href="${up}assets/custom.css"></head>
<body class="source-page"><script>document.documentElement.dataset.theme = localStorage.getItem("tsd-theme") || "os"</script>
<header><a href="${up}index.html">Tidemark</a> <h1>${escaped(path)}</h1></header>
<main>${body}</main></body></html>
`;
}

function fileBody(text) {
  const lines = text.trimEnd().split("\n");
  const rows = lines.map((line, i) => `<a id="L${i + 1}" href="#L${i + 1}">${i + 1}</a>${escaped(line)}`);
  return `<pre tabindex="0"><code>${rows.join("\n")}\n</code></pre>`;
}

function folderBody(root, path, written) {
  const names = readdirSync(join(root, path)).filter((name) => !name.startsWith("."));
  const items = names.map((name) => {
    const own = posix.join(path, name);
    return written.has(own) ? `<li><a href="${name}.html">${escaped(name)}</a></li>` : `<li>${escaped(name)}</li>`;
  });
  return `<ul>${items.join("\n")}</ul>`;
}

/** Links `source/PATH.html` in the pages below a folder. */
function linkedSources(out) {
  const found = new Set();
  for (const name of readdirSync(out, { recursive: true })) {
    if (!name.endsWith(".html")) continue;
    const text = readFileSync(join(out, name), "utf8");
    for (const [, path] of text.matchAll(/(?:\.\.?\/)+source\/([^"#]+)\.html/g)) found.add(path);
  }
  return found;
}

/** Writes the pages that others refer to. */
export function writeSources(root, out, linked) {
  const all = new Set([...linkedSources(out), ...[...linked].filter((path) => existsSync(join(root, path)))]);
  const isFolder = (path) => existsSync(join(root, path)) && statSync(join(root, path)).isDirectory();
  const files = new Set([...all].filter((path) => existsSync(join(root, path)) && !isFolder(path)));
  const put = (path, body) => {
    const target = join(out, "source", `${path}.html`);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, pageHtml(path, body));
  };
  for (const path of files) put(path, fileBody(readFileSync(join(root, path), "utf8")));
  for (const path of all) if (isFolder(path)) put(`${path}/index`, folderBody(root, path, files));
}
