/**
 * @file What the site adds to typedoc: names of entry points, categories of the functions of `tidemark`, and links from the root
 * of the site that hold wherever it is opened.
 */
import { readFileSync } from "node:fs";
import { Comment, Converter, PageEvent, ReflectionKind } from "typedoc";
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

/** @param {Map<string, string>} names of entry points, by the files that they are made of */
export function connect(app, names) {
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
        if (module.name === "tidemark" && child.kind & IS_VALUE) {
          const category = CATEGORIES.find(([, pattern]) => pattern.test(fileOf(child)));
          if (category) setCategory(child, category[0]);
          else app.logger.warn(`site/contents.mjs: ${child.name} of ${fileOf(child)} is in no category`);
        }
      }
    }
  });
  app.renderer.on(PageEvent.END, (page) => {
    const up = "../".repeat(page.url.split("/").length - 1);
    page.contents = page.contents
      ?.replaceAll(SITE_ROOT, up || "./")
      // Icons are in the page (icons.js): browsers load no part of another file from a folder.
      .replace(/href="[^"]*assets\/icons\.svg#/g, 'href="#')
      // The index of the search is loaded when it is opened (site.js).
      .replace(/<script async src="([^"]*)" id="tsd-search-script">/, '<script id="tsd-search-script" data-src="$1">');
  });
}
