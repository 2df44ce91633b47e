/** @file An error in the text of the editor. */

/** The text's name in stacks and on graph nodes. */
export const FILE = "function.ts";

/** The message and its location. */
export interface Complaint {
  readonly message: string;
  /** From 1; null if it concerns the whole text. */
  readonly line: number | null;
}

export const isComplaint = (value: object): value is Complaint => "message" in value;
