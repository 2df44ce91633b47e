/** @file All models that PyTorch exported, in all forms, beside what it recorded of them, and their bits at the smallest budget. */
import { describe, it } from "vitest";
import { expectRecorded, expectSameBits, hasModels, NAMES } from "./support/recorded-models.ts";

const FILES = ["model.pt2", "model.core.pt2", "model.onnx"];

describe.skipIf(!hasModels).each(NAMES)("%s", (name) => {
  it.each(FILES)("from %s computes and trains as recorded", (file) => expectRecorded(name, file));
  it.each(FILES)("from %s has the same bits under the smallest budget", (file) => expectSameBits(name, file));
});
