/** @file Plans on disk: what is read is what was written, whole, or nothing. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { planStore, plansFolder, systemPlanStore } from "./plan-store.ts";

const root = mkdtempSync(join(tmpdir(), "tidemark-plans-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folders = 0;
const newFolder = (): string => join(root, `plans-${folders++}`, "below");

describe("plans on disk", () => {
  it("are found by whoever looks in the same folder, by their key alone", () => {
    const folder = newFolder();
    const text = `{"a":"${"é→".repeat(1000)}"}\n\n`;
    planStore(() => folder, "p").write("key", text);
    expect(planStore(() => folder, "p").read("key")).toBe(text);
    expect(planStore(() => folder, "p").read("other")).toBeNull();
    expect(planStore(newFolder, "p").read("key")).toBeNull();
    expect(readdirSync(folder)).toHaveLength(1);
  });

  it("are nothing once they were cut short, changed, or somebody else's", () => {
    const folder = newFolder();
    const store = planStore(() => folder, "p");
    store.write("key", "a plan of some length");
    store.write("other", "another plan");
    const [path = "", another = ""] = readdirSync(folder).map((name) => join(folder, name));
    const whole = readFileSync(path);
    for (const bytes of [
      whole.subarray(0, -1),
      whole.subarray(0, 70),
      whole.subarray(0, 0),
      whole.map((byte, i) => (i === whole.length - 3 ? byte ^ 1 : byte)),
      whole.map((byte, i) => (i === 3 ? byte ^ 1 : byte)),
      Buffer.from("no digest, no line"),
    ]) {
      writeFileSync(path, bytes);
      expect([store.read("key"), store.read("other")].filter((text) => text !== null)).toHaveLength(1);
    }
    writeFileSync(path, whole);
    expect([store.read("key"), store.read("other")]).toEqual(["a plan of some length", "another plan"]);
    expect(another).not.toBe("");
  });

  it("replace what was there, and leave nothing beside", () => {
    const folder = newFolder();
    const store = planStore(() => folder, "p");
    for (const text of ["one", "two"]) store.write("key", text);
    expect(store.read("key")).toBe("two");
    expect(readdirSync(folder)).toHaveLength(1);
  });

  it("make room for others when they were used longest ago", () => {
    const folder = newFolder();
    const store = planStore(() => folder, "p", 4800);
    for (const key of ["a", "b", "c", "d"]) store.write(key, key.repeat(1000));
    const old = new Date(2020, 0, 1);
    for (const name of readdirSync(folder)) utimesSync(join(folder, name), old, old);
    expect(store.read("b")).not.toBeNull();
    store.write("e", "e".repeat(1000));
    expect(["a", "b", "c", "d", "e"].filter((key) => store.read(key) !== null)).toEqual(["b", "e"]);
    expect(readdirSync(folder)).toHaveLength(2);
  });

  it("cost nothing where nothing can be written", () => {
    const blocked = join(root, "a-file");
    writeFileSync(blocked, "");
    const store = planStore(() => join(blocked, "below"), "p");
    store.write("key", "text");
    expect(store.read("key")).toBeNull();
    const homeless = planStore(() => {
      throw new Error("no home");
    }, "p");
    homeless.write("key", "text");
    expect(homeless.read("key")).toBeNull();
  });

  it("are not kept by sources that nobody built, nor where they are switched off", () => {
    expect(systemPlanStore()).toBeNull();
    expect(plansFolder({ TIDEMARK_PLAN_CACHE: "off" })).toBeNull();
  });
});
