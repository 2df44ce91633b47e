/** @file Texts of errors against golden files, one for each case. UPDATE=1 rewrites them. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { TidemarkError } from "../../src/api/index.ts";

/** Hides a wrong type from the compiler, as JavaScript would. */
export const wrong = <T>(value: unknown): T => value as T;

/** The message of the error, with places left out. */
function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(TidemarkError);
    return `${(error as Error).message.replaceAll(/(\.test\.ts):\d+:\d+/g, "$1:LINE")}\n`;
  }
  return "no error\n";
}

/** Tests of cases in a file `…errors.test.ts`; golden files are in a folder of their own. */
export function checkErrors(folder: string, cases: Readonly<Record<string, () => unknown>>): void {
  for (const [name, run] of Object.entries(cases)) {
    it(`say what is wrong: ${name}`, () => {
      const text = messageOf(run);
      const file = join(folder, `${name}.txt`);
      if (process.env.UPDATE) {
        mkdirSync(folder, { recursive: true });
        writeFileSync(file, text);
      }
      expect(text).toBe(readFileSync(file, "utf8"));
      expect(text, "every error names the user's line").toContain("errors.test.ts:LINE");
      expect(text, "every error says what to do").toContain("\n  help: ");
    });
  }

  it("have no golden file without a case", () => {
    const known = new Set(Object.keys(cases).map((name) => `${name}.txt`));
    expect(readdirSync(folder).filter((name) => !known.has(name))).toEqual([]);
  });
}
