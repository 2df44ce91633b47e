/**
 * @file The explainer as static files: an index and a page for each part, which open from a folder and from any server. Scripts are
 * classic ones and load nothing. The library is one function, `TIDEMARK_ENGINE`, whose text a page makes its worker of: a page that
 * was opened from a file can load no worker.
 *
 *   node scripts/site-explainer.mjs [--out FOLDER]          FOLDER is dist-site/ by default
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "rolldown";
import { completionList } from "./completions.mjs";
import { sourceModule } from "./playground-files.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SOURCES = join(ROOT, "site", "explainer");
const TYPES = join(ROOT, "dist");

const read = (...path) => readFileSync(join(SOURCES, ...path), "utf8");

/** The parts in their order. */
export const PAGES = JSON.parse(read("pages.json"));

/** A classic script of a module with all that it imports. */
async function bundled(path, name) {
  const { output } = await build({
    input: join(SOURCES, path),
    write: false,
    treeshake: { moduleSideEffects: (id) => id.startsWith(SOURCES) || /\/src\/(api|playground\/page)\//.test(id) },
    output: { format: "iife", minify: true, codeSplitting: false, ...(name ? { name } : {}) },
    logLevel: "warn",
    checks: { bundlerTimings: false },
    plugins: [completionList(TYPES)],
  });
  return output[0].code.trim();
}

/** A worker's script as a function of the page. */
async function engine(path) {
  return `window.TIDEMARK_ENGINE=function(){${await bundled(path)}\n};\n`;
}

/** Colours of kinds of buffers as variables of the style sheet. */
async function colours() {
  const { kindColour } = await sourceModule("view/page/palette.ts");
  const { VIEW_KINDS } = await sourceModule("view/picture.ts");
  const list = (dark) => VIEW_KINDS.map((kind) => `--kind-${kind}:${kindColour(kind, dark)}`).join(";");
  return `:root{${list(false)}}\n@media (prefers-color-scheme:dark){:root:not([data-theme]){${list(true)}}}\n:root[data-theme=dark]{${list(true)}}\n`;
}

/** The styles of the views of plans, for those in pages: what they say of whole pages does not apply inside of an element. */
async function viewStyles() {
  const { STYLE } = await sourceModule("view/page/style.ts");
  return `.views{${STYLE}}\n`;
}

const { escaped } = await sourceModule("view/page-shell.ts");

const POLICY = [
  "default-src 'none'",
  "script-src 'self' file: blob: 'unsafe-inline' 'unsafe-eval'",
  "worker-src blob:",
  "style-src 'self' file: 'unsafe-inline'",
  "img-src 'self' file: data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** Before anything is drawn: the colours that were chosen last. */
const EARLY =
  'let t=null;try{t=localStorage.getItem("tidemark-theme")}catch{}document.documentElement.dataset.theme=t??(matchMedia("(prefers-color-scheme: dark)").matches?"dark":"light")';

function navigation(current, home) {
  const items = PAGES.map(({ slug, short, title }, i) => {
    const here = slug === current ? ' aria-current="page"' : "";
    return `<li><a href="${slug}.html"${here} title="${escaped(title)}"><span>${i + 1}</span> ${escaped(short)}</a></li>`;
  });
  const site = home ? `<a class="home" href="${home}">Tidemark</a>` : '<span class="home">Tidemark</span>';
  const index = `<a class="part" href="index.html"${current === "" ? ' aria-current="page"' : ""}>Explainer</a>`;
  return `<a class="skip" href="#main">Skip to the text</a>
<header class="top"><div class="bar">${site}${index}<div id="theme"></div></div>
<nav aria-label="Parts of the explainer"><ol>${items.join("")}</ol></nav></header>`;
}

function document({ slug, title, head, body, home }) {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="style.css">
<script>${EARLY}</script>
${head}</head>
<body>
${navigation(slug, home)}
${body}
</body>
</html>
`;
}

/** Where a source file's page is. */
const codePage = (path) => `code/${path.replaceAll("/", "-")}.html`;

function neighbours(index) {
  const link = (page, word, rel) =>
    page
      ? `<a rel="${rel}" class="${rel}" href="${page.slug}.html"><small>${word}</small>${escaped(page.title)}</a>`
      : `<a class="${rel}" href="index.html"><small>${word}</small>All parts</a>`;
  return `<nav class="around" aria-label="Before and after">${link(PAGES[index - 1], "Before", "prev")}${link(PAGES[index + 1], "Next", "next")}</nav>`;
}

function pageHtml(page, index, home) {
  const { slug, title, lede, code, engine: script } = page;
  const head = [script, slug].filter(Boolean).map((name) => `<script defer src="${name}.js"></script>\n`);
  const links = code.map((path) => `<li><a href="${codePage(path)}"><code>${path}</code></a></li>`);
  const body = `<main id="main"><article class="page-${slug}">
<p class="kicker">Part ${index + 1} of ${PAGES.length}</p>
<h1>${escaped(title)}</h1>
<p class="lede">${escaped(lede)}</p>
<noscript><p class="note">The figures of this page are computed by its script, which is off.</p></noscript>
${read("text", `${slug}.html`).trim().replaceAll("<pre>", '<pre tabindex="0">')}
<section class="code-list"><h2>The code of this page</h2>
<p>Every number on this page was computed when you opened it, by these files:</p>
<ul>${links.join("")}</ul></section>
</article></main>
${neighbours(index)}`;
  return document({ slug, title: `${title} · Tidemark explainer`, head: head.join(""), body, home });
}

function indexHtml(home) {
  const cards = PAGES.map(({ slug, title, lede }, i) => {
    return `<li><a href="${slug}.html"><span class="n">${i + 1}</span><b>${escaped(title)}</b><span>${escaped(lede)}</span></a></li>`;
  });
  const body = `<main id="main"><article class="page-index">
${read("text", "index.html").trim()}
<ol class="cards">${cards.join("")}</ol>
</article></main>`;
  const head = '<script defer src="engine.js"></script>\n<script defer src="index.js"></script>\n';
  return document({ slug: "", title: "How memory is planned · Tidemark explainer", head, body, home });
}

/** A source file with numbered lines, to be linked to. */
function codeHtml(path) {
  const text = readFileSync(join(ROOT, path), "utf8").trimEnd();
  const lines = text.split("\n").map((line) => `<span class="l">${escaped(line)}\n</span>`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(path)} · Tidemark</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="../style.css">
<script>${EARLY}</script>
</head>
<body class="source">
<header class="top"><div class="bar"><a class="home" href="../index.html">Explainer</a></div></header>
<main id="main"><h1>${escaped(basename(path))}</h1><p class="quiet"><code>${escaped(path)}</code></p>
<pre tabindex="0" aria-label="${escaped(path)}"><code>${lines.join("")}</code></pre></main>
</body>
</html>
`;
}

/** Files by path inside of the explainer's folder. */
async function filesOf(home) {
  const scripts = ["index", ...PAGES.map(({ slug }) => slug)];
  const [bundles, main, study, kinds, views] = await Promise.all([
    Promise.all(scripts.map((slug) => bundled(`pages/${slug}.ts`))),
    engine("engine/worker.ts"),
    engine("engine/study-worker.ts"),
    colours(),
    viewStyles(),
  ]);
  const sources = [...new Set(PAGES.flatMap(({ code }) => code))];
  return {
    "index.html": indexHtml(home),
    ...Object.fromEntries(PAGES.map((page, i) => [`${page.slug}.html`, pageHtml(page, i, home)])),
    ...Object.fromEntries(scripts.map((slug, i) => [`${slug}.js`, `${bundles[i]}\n`])),
    "engine.js": main,
    "study-engine.js": study,
    "style.css": `${kinds}${read("figures.css")}${views}${read("style.css")}`,
    ...Object.fromEntries(sources.map((path) => [codePage(path), codeHtml(path)])),
  };
}

/**
 * Writes the explainer to `outDir/explainer`.
 * @param {string} outDir the folder of the site
 * @param {{ home?: string | null }} options `home`: what the name in the header leads to; null: nothing
 * @returns {Promise<Readonly<Record<string, string>>>} the files by path
 */
export async function buildExplainer(outDir, { home = "../index.html" } = {}) {
  const files = await filesOf(home);
  for (const [path, text] of Object.entries(files)) {
    const to = join(outDir, "explainer", path);
    mkdirSync(join(to, ".."), { recursive: true });
    writeFileSync(to, text);
  }
  return files;
}

/** Compressed bytes of everything that a page loads. */
export function pageBytes(files) {
  const packed = (name) => gzipSync(files[name]).length;
  return ["index", ...PAGES.map(({ slug }) => slug)].map((slug) => {
    const script = slug === "index" ? "engine" : PAGES.find((page) => page.slug === slug).engine;
    const parts = [`${slug}.html`, `${slug}.js`, "style.css", ...(script ? [`${script}.js`] : [])];
    return { slug, bytes: parts.reduce((sum, name) => sum + packed(name), 0) };
  });
}

if (process.argv[1] && pathToFileURL(process.argv[1]).href === import.meta.url) {
  const { values } = parseArgs({ options: { out: { type: "string", default: join(ROOT, "dist-site") } } });
  const out = resolve(values.out);
  const files = await buildExplainer(out, { home: null });
  for (const { slug, bytes } of pageBytes(files)) console.log(`${slug.padEnd(16)} ${Math.round(bytes / 1000)} kB gzip`);
  console.log(relative(process.cwd(), join(out, "explainer", "index.html")));
}
