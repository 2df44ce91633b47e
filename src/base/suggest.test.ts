/** @file Which names are close. */
import { expect, test } from "vitest";
import { guess, nearest } from "./suggest.ts";

const programs = ["mlp", "cnn", "lstm", "gpt", "chain64", "chain256"];

test("a slip of the fingers finds the name", () => {
  expect(nearest("mpl", programs)).toEqual(["mlp"]);
  expect(nearest("LSMT", programs)).toEqual(["lstm"]);
  expect(nearest("chain65", programs)).toEqual(["chain64", "chain256"]);
  expect(nearest("chian256", programs)[0]).toBe("chain256");
  expect(guess("gpt2", programs)).toBe("did you mean gpt? ");
});

test("another word finds none", () => {
  expect(nearest("resnet50", programs)).toEqual([]);
  expect(guess("", programs)).toBe("");
});
