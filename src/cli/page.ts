/**
 * @file The page of `tidemark view` as text. Its script is bundled with the package, next to the compiled files; when
 * run from the sources, it is that of the last build.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { TidemarkError } from "../base/errors.ts";
import type { ViewData } from "../view/data.ts";
import { pageHtml } from "../view/html.ts";
import { scriptText } from "../view/page-shell.ts";
import { type NamedPlans, storiesOf } from "../view/stories.ts";

const PLACES = ["../view/page.bundle.js", "../../dist/view/page.bundle.js"] as const;

function pageScript(): string {
  const script = PLACES.map((place) => new URL(place, import.meta.url)).find((url) => existsSync(url));
  if (script) return scriptText(readFileSync(script, "utf8"));
  throw new TidemarkError("UsageError", "view: the page is not built", { help: "npm run build" });
}

/**
 * The whole page.
 * @param named plans whose explanations are embedded in the page
 * @param code replaces the built script
 */
export function pageOf(data: ViewData, named: NamedPlans = new Map(), code?: string): string {
  const script = code === undefined ? pageScript() : scriptText(code);
  const digest = createHash("sha256").update(script, "utf8").digest("base64");
  const stories = [...named].map(([name, plan]) => {
    const packed = gzipSync(JSON.stringify(storiesOf(plan))).toString("base64");
    return { name, packed };
  });
  return pageHtml({ script, digest, data, stories });
}
