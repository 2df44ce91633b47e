/**
 * @file The shell of a page that is one text: its head, and a policy that allows one script, by its digest, and nothing else but what
 * is named. The pages of plans (html.ts) and of the playground (scripts/playground-files.mjs) are made with it.
 */

export interface Shell {
  readonly title: string;
  /** What is shown where scripts are off. */
  readonly noscript?: string;
  /** As `scriptText` gives it; without one the page is what its blocks are. */
  readonly script?: string;
  /** SHA-256 of `script` in base 64. */
  readonly digest?: string;
  /** Directives of the policy beyond those that every page has. */
  readonly policy: readonly string[];
  /** Where else scripts may come from; default: nowhere. */
  readonly scriptSource?: string;
  /** Blocks of data before the script. */
  readonly blocks?: string;
}

/** Code for embedding in a page: nothing in it closes the element. The digest must be of this text. */
export function scriptText(code: string): string {
  return code.replaceAll(/<(?=\/script|!--)/gi, "\\x3c").trim();
}

/** Text for embedding in a page. */
export function escaped(text: string): string {
  const names: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replaceAll(/[&<>"]/g, (c) => names[c] ?? c);
}

export function shellHtml({ title, noscript, script, digest, policy, scriptSource, blocks = "" }: Shell): string {
  const directives = [
    "default-src 'none'",
    ...(script === undefined
      ? []
      : [`script-src ${scriptSource === undefined ? "" : `${scriptSource} `}'sha256-${digest}'`]),
    "style-src 'unsafe-inline'",
    "img-src data: blob:",
    ...policy,
    "base-uri 'none'",
    "form-action 'none'",
  ];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${directives.join("; ")}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
</head>
<body>
${noscript === undefined ? "" : `<noscript>${noscript}</noscript>\n`}${blocks}${script === undefined ? "" : `<script>${script}</script>\n`}</body>
</html>
`;
}
