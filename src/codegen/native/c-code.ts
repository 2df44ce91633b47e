/** @file C text under construction: lines, blocks, and names that are not taken. */
import { localName } from "./names.ts";

export class CCode {
  readonly lines: string[] = [];
  #depth = 1;
  #names = 0;

  line(text: string): void {
    this.lines.push(`${"  ".repeat(this.#depth)}${text}`);
  }

  /** `head { body }` on lines of their own. */
  block(head: string, body: () => void): void {
    this.line(`${head} {`);
    this.#depth += 1;
    body();
    this.#depth -= 1;
    this.line("}");
  }

  /** A name that no other value of the function has. */
  name(word: string): string {
    this.#names += 1;
    return localName(word, this.#names);
  }
}
