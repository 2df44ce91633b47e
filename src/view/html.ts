/**
 * @file The page as one text: shell (page-shell.ts), script and data. It loads nothing else. Data is a non-executable block with every
 * `<` escaped, so no name in a plan can end the block.
 */
import type { ViewData } from "./data.ts";
import { escaped, shellHtml } from "./page-shell.ts";

export interface PageParts {
  /** The bundled page, as `scriptText` gives it. */
  readonly script: string;
  /** SHA-256 of `script` in base 64. */
  readonly digest: string;
  readonly data: ViewData;
  /** JSON of the explanations of plans, compressed by gzip, in base 64. */
  readonly stories: readonly { readonly name: string; readonly packed: string }[];
}

/** JSON for embedding in a page. */
export function dataText(data: unknown): string {
  const escapes: Readonly<Record<string, string>> = { "<": "\\u003c", "\u2028": "\\u2028", "\u2029": "\\u2029" };
  return JSON.stringify(data).replaceAll(/[<\u2028\u2029]/g, (c) => escapes[c] ?? c);
}

/** The id of the block with the explanations of a plan. */
export const storiesId = (name: string): string => `stories-${name}`;

export function pageHtml({ script, digest, data, stories }: PageParts): string {
  const blocks = stories.map(
    ({ name, packed }) => `<script type="text/plain" id="${escaped(storiesId(name))}">${packed}</script>\n`,
  );
  return shellHtml({
    title: `${data.title} · Tidemark`,
    noscript: "This page draws with a script of its own; it loads nothing.",
    ...{ script, digest },
    policy: [`connect-src ${data.live ? "'self'" : "'none'"}`],
    blocks: `<script type="application/json" id="data">${dataText(data)}</script>\n${blocks.join("")}`,
  });
}
