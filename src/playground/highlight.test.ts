/** @file Colours of code: nothing is lost, and what is what. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { EXAMPLES } from "./examples.ts";
import { linesOf, tokensOf } from "./highlight.ts";

it("every character is in one token, whatever the text", () => {
  const piece = fc.oneof(
    fc.string(),
    fc.constantFrom("/*", "*/", "//", "`", '"', "'", "\\", "\n", "${", "x(", "12.5e3"),
  );
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const text = pieces.join("");
      expect(
        tokensOf(text)
          .map((token) => token.text)
          .join(""),
      ).toBe(text);
      expect(
        linesOf(text)
          .map((line) => line.map((token) => token.text).join(""))
          .join("\n"),
      ).toBe(text);
    }),
    { seed: 3, numRuns: 500 },
  );
});

it("words, calls, types, numbers, texts and comments are told apart", () => {
  const kinds = Object.fromEntries(
    tokensOf('const x: Tensor = f(12, "a"); // end').map(({ text, kind }) => [text, kind]),
  );
  expect(kinds).toMatchObject({
    ...{
      const: "keyword",
      x: "plain",
      Tensor: "type",
      f: "call",
      "12": "number",
      '"a"': "string",
      "// end": "comment",
    },
  });
});

it("examples have the lines that they have", () => {
  for (const { text } of EXAMPLES) expect(linesOf(text)).toHaveLength(text.split("\n").length);
});
