/**
 * @file The documents as typedoc reads them: copies with a title and a section in front, in the folders that they have in the
 * repository, so that their links to each other hold. Links to files that are no documents lead to pages of the sources.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { FIRST_LINKS, HOME, LIVE, OPTIONAL, SECTIONS } from "./contents.mjs";

/** In front of paths from the root of the site, until a page knows where it is (plugin.mjs). */
export const SITE_ROOT = "siteroot:";

const PICTURE = /\.(png|svg|jpg|gif)$/;

/** The Markdown files of a folder, as paths from the root of the repository. */
function documentsIn(root, folder) {
  return readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .sort()
    .map((name) => posix.join(folder, name));
}

/** Entries of the sections with their documents; of optional ones those that exist. */
function entriesOf(root) {
  return SECTIONS.flatMap(({ title, documents }) =>
    documents
      .filter((entry) => !OPTIONAL.includes(entry) || existsSync(join(root, entry)))
      .map((entry) => ({ section: title, entry, children: entry.folder ? documentsIn(root, entry.folder) : [] })),
  );
}

/** Throws when a document is listed and not there, or there and not listed. */
function requireComplete(root, listed) {
  const gone = listed.filter((path) => !existsSync(join(root, path)));
  const unlisted = documentsIn(root, "docs").filter((path) => !listed.includes(path));
  if (gone.length + unlisted.length === 0) return;
  const said = [...gone.map((path) => `${path} is not there`), ...unlisted.map((path) => `${path} is not listed`)];
  throw new Error(`site/contents.mjs: ${said.join(", ")}`);
}

/** The first heading of a document, and the text without it. */
function split(text) {
  const title = /^# (.+)$/m.exec(text)?.[1] ?? "";
  return {
    title: title.replaceAll("`", ""),
    body: text.replace(/^# .+\n+/m, "").replace(/^#+ .*$/gm, (line) => line.replaceAll("`", "")),
  };
}

/** Text outside of code, changed by a function. */
function outsideCode(text, change) {
  return text
    .split(/(^```[\s\S]*?^```|`[^`\n]+`)/m)
    .map((part, i) => (i % 2 === 0 ? change(part) : part))
    .join("");
}

/** Links of a document: those to documents and pictures stay, others become pages of the sources. */
function relinked(text, path, { documents, folders, root, linked }) {
  const rewrite = (link) => {
    if (/^[a-z-]+:|^#/.test(link)) return link;
    const [target = "", anchor] = link.split("#");
    const file = posix.join(posix.dirname(path), target).replace(/\/$/, "");
    if (documents.has(file) || PICTURE.test(file)) return link;
    const own = folders.get(file);
    if (own) return posix.relative(posix.dirname(path), own);
    const page = existsSync(join(root, file)) && statSync(join(root, file)).isDirectory() ? `${file}/index` : file;
    linked.add(file);
    return `${SITE_ROOT}source/${page}.html${anchor ? `#${anchor}` : ""}`;
  };
  return outsideCode(text, (part) => part.replace(/\]\(([^()\s]+)\)/g, (_, link) => `](${rewrite(link)})`));
}

/** Blocks without the line that tells the tests to run them. */
const shown = (text) => text.replace(/^(```ts\n)\/\/ run.*\n/gm, "$1");

const siteLink = ([title, path]) => `[${title}](${SITE_ROOT}${path})`;

const header = (fields) =>
  `---\n${Object.entries(fields)
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`)
    .join("")}---\n\n`;

/**
 * Writes the documents below a folder.
 *
 * @returns {{ home: string, documents: string[], linked: Set<string> }} the first page, the documents in their order, and the
 * files of the repository that they refer to.
 */
export function stageDocuments(root, stage) {
  rmSync(stage, { recursive: true, force: true });
  const entries = entriesOf(root);
  const folders = new Map(
    entries.flatMap(({ entry }) => (entry.folder ? [[entry.folder, `${entry.folder}/index.md`]] : [])),
  );
  const paths = entries.flatMap(({ entry, children }) => (entry.folder ? children : [entry]));
  requireComplete(root, paths);
  const context = { root, folders, documents: new Set([...paths, HOME]), linked: new Set() };
  const write = (path, fields, text) => {
    mkdirSync(dirname(join(stage, path)), { recursive: true });
    writeFileSync(join(stage, path), `${header(fields)}${relinked(shown(text), path, context)}`);
  };
  const copy = (path, fields) => {
    const { title, body } = split(readFileSync(join(root, path), "utf8"));
    write(path, { title, ...fields }, LIVE[path] ? `**${siteLink(LIVE[path])}**\n\n${body}` : body);
  };

  mkdirSync(stage, { recursive: true });
  writeFileSync(join(stage, HOME), homeText(root, context));
  for (const { section, entry, children } of entries) {
    if (!entry.folder) {
      copy(entry, { category: section });
      continue;
    }
    for (const child of children) copy(child, {});
    const index = folders.get(entry.folder);
    const titles = children.map((path) => [path, split(readFileSync(join(root, path), "utf8")).title]);
    const list = titles.map(([path, title]) => `- [${title}](${posix.basename(path)})`).join("\n");
    const names = children.map((path) => posix.basename(path));
    write(index, { title: entry.title, category: section, children: names }, `${entry.text}\n\n${list}\n`);
  }
  cpSync(join(root, "docs", "figures"), join(stage, "docs", "figures"), { recursive: true });
  return {
    home: join(stage, HOME),
    documents: entries.map(({ entry }) => join(stage, entry.folder ? folders.get(entry.folder) : entry)),
    linked: context.linked,
  };
}

/** README without its heading, which the page has from the name of the project, below links to what is read first. */
function homeText(root, context) {
  const links = `${FIRST_LINKS.map(siteLink).join(" · ")}\n\n`;
  return links + relinked(shown(split(readFileSync(join(root, HOME), "utf8")).body), HOME, context);
}
