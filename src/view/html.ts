/**
 * @file The page as one text: shell, script and data. It loads nothing else. Data is a non-executable block with every
 * `<` escaped, so no name in a plan can end the block; the content security policy allows only this script, by its
 * digest.
 */
import type { ViewData } from "./data.ts";

export interface PageParts {
  /** The bundled page, as `scriptText` gives it. */
  readonly script: string;
  /** SHA-256 of `script` in base 64. */
  readonly digest: string;
  readonly data: ViewData;
  /** JSON of the explanations of plans, compressed by gzip, in base 64. */
  readonly stories: readonly { readonly name: string; readonly packed: string }[];
}

/** Code for embedding in a page: nothing in it closes the element. The digest must be of this text. */
export function scriptText(code: string): string {
  return code.replaceAll(/<(?=\/script|!--)/gi, "\\x3c").trim();
}

/** JSON for embedding in a page. */
export function dataText(data: unknown): string {
  const escapes: Readonly<Record<string, string>> = { "<": "\\u003c", "\u2028": "\\u2028", "\u2029": "\\u2029" };
  return JSON.stringify(data).replaceAll(/[<\u2028\u2029]/g, (c) => escapes[c] ?? c);
}

function escaped(text: string): string {
  const names: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replaceAll(/[&<>"]/g, (c) => names[c] ?? c);
}

/** The id of the block with the explanations of a plan. */
export const storiesId = (name: string): string => `stories-${name}`;

export function pageHtml({ script, digest, data, stories }: PageParts): string {
  const policy = [
    "default-src 'none'",
    `script-src 'sha256-${digest}'`,
    "style-src 'unsafe-inline'",
    "img-src data: blob:",
    `connect-src ${data.live ? "'self'" : "'none'"}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const blocks = stories.map(
    ({ name, packed }) => `<script type="text/plain" id="${escaped(storiesId(name))}">${packed}</script>\n`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(data.title)} · Tidemark</title>
</head>
<body>
<noscript>This page draws with a script of its own; it loads nothing.</noscript>
<script type="application/json" id="data">${dataText(data)}</script>
${blocks.join("")}<script>${script}</script>
</body>
</html>
`;
}
