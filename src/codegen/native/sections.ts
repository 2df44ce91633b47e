/**
 * @file The sections of a generated C file. The file as a whole compiles; so do its functions one by one, which is how
 * compilers work side by side and how functions are found again in other programs (node/native/units.ts).
 *
 *   // section: types             element types and macros: above everything
 *   // section: registers         vectors and their functions: above inline text and functions
 *   // section: inline            types and inline functions, for the sections below that use their names
 *   // section: function          functions that are called by their names
 *   // section: function rare     of these, functions that hardly take time in this program
 *   // section: program           the rest: threads, and the calls
 *
 * A section uses names of its own and of sections above it. Names that generated text defines begin with `tide_`
 * (names.ts), so what a section needs can be read from its text.
 */

export type SectionKind = "types" | "registers" | "inline" | "function" | "program";

export interface Section {
  readonly kind: SectionKind;
  /** Hardly takes time: not worth a compiler's either. */
  readonly rare: boolean;
  readonly text: string;
}

/** The line above a section. */
export const heading = (kind: SectionKind, rare = false): string => `// section: ${kind}${rare ? " rare" : ""}\n`;

const HEADING = /^\/\/ section: (types|registers|inline|function|program)( rare)?\n/gm;

/** The sections of a file, in order; none if it has no headings. */
export function sectionsOf(text: string): readonly Section[] {
  const headings = [...text.matchAll(HEADING)];
  return headings.map((found, i) => ({
    kind: found[1] as SectionKind,
    rare: found[2] !== undefined,
    text: text.slice(found.index + found[0].length, headings[i + 1]?.index),
  }));
}
