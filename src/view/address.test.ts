/** @file The state of a page in its address: what is written is read back, and damaged text is a problem, never an error. */
import { expect, it } from "vitest";
import { ADDRESS_VERSION, addressText, readAddress, wholeField, windowOfText, windowText } from "./address.ts";

it("reads back what it writes, whatever is in the values", () => {
  const fields = {
    budget: "27262976",
    value: "d_block0.attention.qkv_re",
    search: "a b&c=d#e%20ü\u2028😀",
    zoom: "0,1,0,64",
  };
  const text = addressText(fields);
  expect(text).toMatch(/^#v1&budget=27262976&value=d_block0\.attention\.qkv_re&search=/);
  expect(text).toContain("zoom=0,1,0,64");
  expect(readAddress(text)).toEqual({ fields });
});

it("is empty where everything is at its default", () => {
  expect(addressText({ search: "" })).toBe("");
  for (const hash of ["", "#"]) expect(readAddress(hash)).toEqual({ fields: {} });
});

it("says what is wrong with a damaged address", () => {
  expect(readAddress("#budget=1")).toEqual({ problem: "it does not begin with a version" });
  expect(readAddress("#v1&value=%E0%A4")).toEqual({ problem: "value is damaged" });
  expect(readAddress("#v1&nonsense")).toEqual({ problem: "“nonsense” is not a field" });
  expect(readAddress(`#v1&value=${"a".repeat(2 ** 18)}`)).toEqual({ problem: "it is too long" });
  const newer = { problem: expect.stringContaining(`version ${ADDRESS_VERSION + 1}`) };
  expect(readAddress(`#v${ADDRESS_VERSION + 1}&x=1`)).toEqual(newer);
});

it("reads fields as numbers and parts of the plane, or not at all", () => {
  const { fields } = readAddress("#v1&budget=12&step=-1&plan=1e9&__proto__=3") as { fields: Record<string, string> };
  expect(wholeField(fields, "budget")).toBe(12);
  expect(wholeField(fields, "constructor")).toBeNull();
  for (const name of ["step", "plan"]) expect(wholeField(fields, name)).toBeUndefined();
  const window = { t0: 0.25, t1: 0.5000001, a0: 64, a1: 1048576 };
  expect(windowOfText(windowText(window))).toEqual(window);
  for (const bad of ["", "0,1,0", "0,1,9,3", "0,2,0,64", "-1,1,0,64", "0,1,NaN,64", "a,b,c,d"])
    expect(windowOfText(bad), bad).toBeNull();
});
