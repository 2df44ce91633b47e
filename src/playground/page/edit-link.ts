/**
 * @file The editor's text in the address of its page. A text that comes with a link is not run until the user asks for
 * it: the worker that runs texts keeps accidents in, and is no wall against intent (docs/security.md). Examples of the
 * page run by themselves, and so does a text that ran in this tab before, as after a reload.
 */
import { type AddressFields, readAddress } from "../../view/address.ts";
import { EXAMPLES } from "../examples.ts";
import { packedText, unpackedText } from "./packed-text.ts";

/** The name under which this tab remembers the text that ran last. */
const RAN = "tidemark-playground-ran";

/** A text to open with. */
export interface Opening {
  readonly text: string;
  /** Index of the example. */
  readonly example: number;
  /** Whether it may run before the user asks. */
  readonly runs: boolean;
  /** What is wrong with the address. */
  readonly problems: readonly string[];
}

const nameOf = (example: number): string => (EXAMPLES[example]?.name ?? "").replaceAll(" ", "-");
const textOf = (example: number): string => EXAMPLES[example]?.text ?? "";

/** Fields for a text, which may be that of an example. */
export async function textFields(text: string, example: number): Promise<AddressFields> {
  return {
    example: example === 0 ? "" : nameOf(example),
    code: text === textOf(example) ? "" : await packedText(text),
  };
}

/** The text that an address has. */
export async function openingOf(fields: AddressFields): Promise<Opening> {
  const named = fields.example === undefined ? 0 : EXAMPLES.findIndex((_, i) => nameOf(i) === fields.example);
  const example = Math.max(0, named);
  const problems = named < 0 ? [`there is no example ${(fields.example ?? "").slice(0, 40)}`] : [];
  const none = { text: textOf(example), example, runs: true };
  if (fields.code === undefined) return { ...none, problems };
  const text = await unpackedText(fields.code);
  if (text === null) return { ...none, problems: [...problems, "the program is damaged; this is the example"] };
  const runs = EXAMPLES.some((known) => known.text === text) || text === remembered();
  return { text, example, runs, problems };
}

/** The text that the page's address has now. */
export async function firstOpening(): Promise<Opening> {
  const reading = readAddress(location.hash);
  return openingOf("fields" in reading ? reading.fields : {});
}

function remembered(): string | null {
  try {
    return sessionStorage.getItem(RAN);
  } catch {
    return null;
  }
}

/** Remembers a text that the user ran. */
export function rememberText(text: string): void {
  try {
    sessionStorage.setItem(RAN, text);
  } catch {
    // A page without storage asks again after a reload.
  }
}
