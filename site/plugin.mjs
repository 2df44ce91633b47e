/**
 * @file What the site adds to typedoc: names of entry points, categories of the functions of `tidemark`, and links from the root
 * of the site that hold wherever it is opened.
 */
import { readFileSync } from "node:fs";
import { Comment, CommentTag, Converter, PageEvent, ReflectionKind } from "typedoc";
import { CATEGORIES } from "./contents.mjs";
import { SITE_ROOT } from "./stage.mjs";

/** Paths below src/ of what defines a reflection. */
function fileOf(reflection) {
  const file = (reflection.sources ?? reflection.signatures?.[0]?.sources)?.[0]?.fullFileName ?? "";
  return file.replace(/^.*\/src\//, "");
}

function setCategory(reflection, title) {
  reflection.comment ??= new Comment();
  reflection.comment.removeTags("@category");
  reflection.comment.blockTags.push({
    tag: "@category",
    content: [{ kind: "text", text: title }],
    skipRendering: true,
  });
}

const IS_VALUE = ReflectionKind.Function | ReflectionKind.Variable | ReflectionKind.Class | ReflectionKind.Namespace;

/** What the header of a file says of it. */
function headerOf(file) {
  const comment = /^\/\*\*([\s\S]*?)\*\//.exec(readFileSync(file, "utf8"))?.[1] ?? "";
  return comment
    .replace(/^\s*\* ?/gm, "")
    .replace("@file", "")
    .trim();
}

/** What can be called comes before types, each by name. */
const before = (a, b) =>
  Number((b.kind & IS_VALUE) !== 0) - Number((a.kind & IS_VALUE) !== 0) || a.name.localeCompare(b.name, "en");

/** The reference begins with `tidemark` and has the order of the exports, which are in the order of their names. */
function sortEntries(project, names) {
  for (const module of project.getReflectionsByKind(ReflectionKind.Module)) {
    const lists = [module, ...(module.categories ?? []), ...(module.groups ?? [])];
    for (const list of lists) list.children?.sort(before);
    module.childrenIncludingDocuments?.sort(before);
  }
  for (const category of project.categories ?? []) {
    if (category.title === "Reference") category.children.sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
  }
}

const text = (value) => ({ kind: "text", text: value });

/** Puts a section behind the comment of a function. */
function addSection(signature, tag, body) {
  signature.comment.blockTags.push(new CommentTag(tag, [text(body)]));
}

const takesTensor = (type) => {
  if (!type) return false;
  if (type.type === "reference") return type.name === "Tensor" || type.name === "TensorLike";
  return type.type === "union" && type.types.some(takesTensor);
};

const hasExample = (signature) => signature.comment?.blockTags.some(({ tag }) => tag === "@example") ?? false;

/** Overloads are written from the particular to the general, as the compiler wants them; readers want the general one first. */
function sortSignatures({ signatures }) {
  signatures?.sort((a, b) => (a.typeParameters?.length ?? 0) - (b.typeParameters?.length ?? 0));
}

/** What of a function is asked about: the entry point and the path of its name, and what its first signature takes. */
function factRequest(module, path, signature) {
  const example = signature.comment?.blockTags.find(({ tag }) => tag === "@example");
  if (!example) return null;
  const params = (signature.parameters ?? []).map(({ name, type, flags }) => ({
    name,
    isTensor: takesTensor(type),
    isRest: flags.isRest,
  }));
  const code = example.content
    .map((part) => part.text)
    .join("")
    .replace(/^```\w*\n|```\s*$/g, "");
  return { module, path, example: code, params };
}

/** Sections about memory and errors, computed from the example of a function (facts.ts), where its comment does not say it. */
function addFacts(declaration, module, path, factsOf) {
  const signature = declaration.signatures?.findLast(hasExample) ?? declaration.signatures?.at(-1);
  const request = signature && factRequest(module, path, signature);
  const facts = request && factsOf(request);
  if (!facts) return;
  const says = (tag) => signature.comment.blockTags.some((each) => each.tag === tag);
  if (facts.memory && !says("@memory")) addSection(signature, "@memory", facts.memory);
  if (facts.errors.size > 0) {
    const rows = [...facts.errors].map(
      ([code, message]) => `- [${code}](${SITE_ROOT}documents/Errors.html#${code.toLowerCase()}): ${inText(message)}`,
    );
    addSection(signature, "@errors", `Among others, for arguments that do not fit:\n\n${rows.join("\n")}`);
  }
}

/** The same for the functions of a namespace. */
function addAllFacts(child, module, path, factsOf) {
  const name = [...path, child.name];
  sortSignatures(child);
  if (child.kind === ReflectionKind.Function) addFacts(child, module, name, factsOf);
  if (child.kind === ReflectionKind.Namespace)
    for (const inner of child.children ?? []) addAllFacts(inner, module, name, factsOf);
}

/** A message as text of Markdown. */
const inText = (message) => message.split("\n")[0].replace(/[\\`*_[\]<>{}@|]/g, "\\$&");

/** @param {Map<string, string>} names of entry points, by the files that they are made of
 * @param {Function} factsOf what is computed of a function */
export function connect(app, names, factsOf) {
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (_, reflection) => {
    if (reflection.kind !== ReflectionKind.Module) return;
    const file = reflection.sources?.[0]?.fullFileName ?? reflection.project.getSymbolFromReflection?.(reflection);
    const name = names.get(String(file));
    if (!name) return;
    reflection.name = name;
    reflection.comment = new Comment([{ kind: "text", text: headerOf(file) }]);
  });
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.getReflectionsByKind(ReflectionKind.Module)) {
      setCategory(module, "Reference");
      for (const child of module.children ?? []) {
        addAllFacts(child, module.name, [], factsOf);
        if (module.name === "tidemark" && child.kind & IS_VALUE) {
          const category = CATEGORIES.find(([, pattern]) => pattern.test(fileOf(child)));
          if (category) setCategory(child, category[0]);
          else app.logger.warn(`site/contents.mjs: ${child.name} of ${fileOf(child)} is in no category`);
        }
      }
    }
  });
  app.converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => sortEntries(project, [...names.values()]), -1000);
  app.renderer.on(PageEvent.END, (page) => {
    const up = "../".repeat(page.url.split("/").length - 1);
    page.contents = page.contents
      ?.replaceAll(SITE_ROOT, up || "./")
      // Icons are in the page (icons.js): browsers load no part of another file from a folder.
      .replace(/href="[^"]*assets\/icons\.svg#/g, 'href="#')
      // Parts of a page by their names, for screen readers.
      .replace('<div class="col-content">', '<div class="col-content" role="main">')
      .replace('<nav id="tsd-sidebar-links"', '<nav aria-label="Applications" id="tsd-sidebar-links"')
      .replace('<nav class="tsd-navigation">', '<nav aria-label="Contents" class="tsd-navigation">')
      .replaceAll("<table>", '<table tabindex="0">')
      .replaceAll("<img ", '<img loading="lazy" ')
      // The index of the search is loaded when it is opened (site.js).
      .replace(/<script async src="([^"]*)" id="tsd-search-script">/, '<script id="tsd-search-script" data-src="$1">');
  });
}
