/**
 * @file The format of `tests/passes/*.ir`: cases separated by a line `// ====`, each a sentence, the passes to run, a
 * program, a line `// ----`, and the program expected.
 *
 *   // cse merges equal nodes
 *   // run: cse
 *
 *   func … { … }
 *
 *   // ----
 *   func … { … }
 */

export interface PassCase {
  /** The comment lines above `// run:`, joined. */
  readonly title: string;
  readonly passes: readonly string[];
  readonly program: string;
  readonly expected: string;
}

function readCase(text: string, file: string): PassCase {
  const [before = "", expected, ...more] = text.split(/^\/\/ ----\n/m);
  const header = /^((?:\/\/ .*\n)+)\/\/ run: (.+)\n/.exec(before.trimStart());
  if (!header || expected === undefined || more.length > 0) {
    throw new Error(`${file}: a case is a sentence, "// run: pass", a program, "// ----" and a program:\n${text}`);
  }
  const [whole, sentence = "", passes = ""] = header;
  return {
    title: sentence.replaceAll("// ", "").trim().replaceAll("\n", " "),
    passes: passes.split(",").map((pass) => pass.trim()),
    program: `${before.trimStart().slice(whole.length).trim()}\n`,
    expected: `${expected.trim()}\n`,
  };
}

export function readCases(text: string, file: string): readonly PassCase[] {
  return text.split(/^\/\/ ====\n/m).map((part) => readCase(part, file));
}

/** Breaks a sentence into comment lines of at most 110 characters. */
function commentLines(title: string): string {
  const lines: string[] = ["//"];
  for (const word of title.split(" ")) {
    const last = lines[lines.length - 1] as string;
    if (last.length + word.length < 110) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`// ${word}`);
  }
  return lines.join("\n");
}

export function writeCases(cases: readonly PassCase[]): string {
  return cases
    .map(({ title, passes, program, expected }) => {
      return `${commentLines(title)}\n// run: ${passes.join(", ")}\n\n${program}\n// ----\n${expected}`;
    })
    .join("\n// ====\n");
}
