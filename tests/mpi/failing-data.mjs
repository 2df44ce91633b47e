/** @file A user's data that is not there, in a file of its own, whose line errors are to name. */
export function failingRows() {
  throw new Error("the data is not there");
}
