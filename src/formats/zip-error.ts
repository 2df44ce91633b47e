/** @file The error of an archive that cannot be read. */
import { TidemarkError } from "../base/errors.ts";

export function badArchive(summary: string, help?: string): TidemarkError {
  return new TidemarkError("InvalidFile", summary, {
    help: help ?? "the file is damaged or not a zip archive; fetch or write it again",
  });
}
