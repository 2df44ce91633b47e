/** @file The steps of the build of the site, in the order of its parts: documents and reference, sources, pages that compute. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "rolldown";
import { Application, Configuration } from "typedoc";
import { buildPlayground } from "../scripts/playground-files.mjs";
import { CATEGORIES, SECTIONS } from "./contents.mjs";
import { connect } from "./plugin.mjs";
import { writeSources } from "./source-pages.mjs";
import { SITE_ROOT, stageDocuments } from "./stage.mjs";
import { PROGRAMS, writeViews } from "./views.mjs";

/** Sections of guides, which the search finds first. */
const GUIDES = ["Start", "Memory", "Training", "Programs", "Machines", "Formats"];

/** Names of entry points with the files that they are made of. */
export function entryPoints(root) {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return Object.entries(exports)
    .filter(([, target]) => typeof target !== "string")
    .map(([path, target]) => [
      path.replace(/^\./, "tidemark"),
      target.default.replace(/^\.\/dist\/(.*)\.js$/, "src/$1.ts"),
    ]);
}

/** What typedoc is told. */
function typedocOptions(root, entries, staged) {
  return {
    name: "Tidemark",
    entryPoints: entries.map(([, path]) => join(root, path)),
    tsconfig: join(root, "site", "tsconfig.json"),
    readme: staged.home,
    projectDocuments: staged.documents,
    customCss: join(root, "site", "style.css"),
    customJs: join(root, "site", "site.js"),
    favicon: join(root, "site", "favicon.svg"),
    basePath: root,
    displayBasePath: root,
    disableGit: true,
    sourceLinkTemplate: `${SITE_ROOT}source/{path}.html#L{line}`,
    gitRevision: "main",
    skipErrorChecking: true,
    excludeInternal: true,
    excludePrivate: true,
    includeVersion: true,
    hideGenerator: true,
    includeHierarchySummary: false,
    searchInComments: true,
    searchInDocuments: true,
    // Guides are found before options that mention the word.
    searchCategoryBoosts: Object.fromEntries(GUIDES.map((title) => [title, 4])),
    searchGroupBoosts: { Functions: 2, Properties: 0.1 },
    headings: { readme: true, document: true },
    categorizeByGroup: false,
    defaultCategory: "Types and options",
    categoryOrder: [...SECTIONS.map(({ title }) => title), ...CATEGORIES.map(([title]) => title), "*"],
    navigation: { includeCategories: true, includeGroups: false, includeFolders: false, excludeReferences: true },
    sort: ["source-order"],
    groupOrder: ["Functions", "Variables", "Classes", "Namespaces", "Interfaces", "Type Aliases", "*"],
    lightHighlightTheme: "github-light-high-contrast",
    darkHighlightTheme: "github-dark-high-contrast",
    visibilityFilters: {},
    blockTags: [...Configuration.OptionDefaults.blockTags, "@file", "@memory", "@errors"],
    highlightLanguages: [...Configuration.OptionDefaults.highlightLanguages, "python", "c"],
    excludeTags: [...Configuration.OptionDefaults.excludeTags, "@file"],
    navigationLinks: {
      Explainer: `${SITE_ROOT}explainer/index.html`,
      Playground: `${SITE_ROOT}playground/index.html`,
      Plans: `${SITE_ROOT}plans/${PROGRAMS[0]}.html`,
    },
    validation: { notExported: false, invalidLink: true, invalidPath: true, rewrittenLink: true, notDocumented: false },
    treatWarningsAsErrors: true,
    treatValidationWarningsAsErrors: true,
    logLevel: "Warn",
  };
}

/** The functions of facts.ts: Node 20 runs no TypeScript, so they are bundled with the library first. */
async function factsModule(root) {
  const file = join(root, "node_modules", ".cache", "site-facts.mjs");
  const input = join(root, "site", "facts.ts");
  await build({
    input,
    platform: "node",
    external: ["koffi", "highs"],
    treeshake: false,
    output: { file, codeSplitting: false, keepNames: true },
    logLevel: "silent",
  });
  return import(`${pathToFileURL(file).href}?${Date.now()}`);
}

/** The pages of documents and reference. */
async function writePages(root, out, staged) {
  const entries = entryPoints(root);
  const options = typedocOptions(root, entries, staged);
  const explainer = join(root, "scripts", "site-explainer.mjs");
  if (!existsSync(explainer)) delete options.navigationLinks.Explainer;
  const app = await Application.bootstrap(options);
  const { factsOf } = await factsModule(root);
  connect(app, new Map(entries.map(([name, path]) => [join(root, path), name])), factsOf);
  const project = await app.convert();
  if (!project) throw new Error("typedoc could not read the sources");
  app.validate(project);
  await app.generateDocs(project, out);
  if (app.logger.hasErrors() || app.logger.hasWarnings()) throw new Error("typedoc has said above what is wrong");
  return project;
}

/** Builds all of it; the folder is emptied first. */
export async function buildSite(root, out) {
  const started = performance.now();
  if (existsSync(out) && readdirSync(out).length > 0 && !existsSync(join(out, "assets")))
    throw new Error(`${out} is a folder with other files: name another one`);
  rmSync(out, { recursive: true, force: true });
  const staged = stageDocuments(root, join(root, "node_modules", ".cache", "site"));
  await writePages(root, out, staged);
  await writeSources(root, out, staged.linked);
  mkdirSync(join(out, "playground"), { recursive: true });
  await buildPlayground(join(out, "playground"), join(root, "dist"), { fromFiles: true, home: "../index.html" });
  writeViews(root, join(out, "plans"));
  const explainer = join(root, "scripts", "site-explainer.mjs");
  if (existsSync(explainer)) await (await import(pathToFileURL(explainer).href)).buildExplainer(out);
  cpSync(join(root, "LICENSE"), join(out, "LICENSE"));
  const pages = readdirSync(out, { recursive: true }).filter((path) => path.endsWith(".html")).length;
  return { pages, seconds: (performance.now() - started) / 1000 };
}
