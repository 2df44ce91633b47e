/** @file What is wrong with a text in the editor. */

/** The text's name in stacks and on graph nodes. */
export const FILE = "function.ts";

/** What is wrong, and where. */
export interface Complaint {
  readonly message: string;
  /** From 1; null where it is about the whole. */
  readonly line: number | null;
}

export const isComplaint = (made: object): made is Complaint => "message" in made;
