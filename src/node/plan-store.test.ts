/** @file Plans on disk: what is read is what was written, whole, or nothing. */
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { testHost } from "../../tests/support/host.ts";
import "../api/methods.ts";
import { compile } from "../api/compile.ts";
import { grad } from "../api/grad.ts";
import type { PlanStore } from "../compiler/plan-cache.ts";
import { tensor } from "../trace/literal.ts";
import type { Tensor } from "../trace/tensor.ts";
import { planStore, plansFolder, systemPlanStore } from "./plan-store.ts";
import { SealedFolder } from "./sealed-folder.ts";

const root = mkdtempSync(join(tmpdir(), "tidemark-plans-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folders = 0;
const newFolder = (): string => join(root, `cache-${folders++}`, "below", "plans");

const storeIn = (folder: string, largestBytes?: number): PlanStore =>
  planStore(() => SealedFolder.open(dirname(folder), basename(folder)), "p", largestBytes);

describe("plans on disk", () => {
  it("are found in the same folder by their key alone", () => {
    const folder = newFolder();
    const text = `{"a":"${"é→".repeat(1000)}"}\n\n`;
    storeIn(folder).write("key", text);
    expect(storeIn(folder).read("key")).toBe(text);
    expect(storeIn(folder).read("other")).toBeNull();
    expect(storeIn(newFolder()).read("key")).toBeNull();
    expect(readdirSync(folder)).toHaveLength(1);
  });

  it("are ignored once they were truncated, changed, or written by another user", () => {
    const folder = newFolder();
    const store = storeIn(folder);
    store.write("key", "a plan of some length");
    store.write("other", "another plan");
    const [path = "", another = ""] = readdirSync(folder).map((name) => join(folder, name));
    const whole = readFileSync(path);
    for (const bytes of [
      whole.subarray(0, -1),
      whole.subarray(0, 30),
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

  it("are nothing with a digest in place of the seal, as another's, or in another's place", () => {
    const folder = newFolder();
    const store = storeIn(folder);
    store.write("key", "sin");
    store.write("other", "tanh");
    const [path = "", another = ""] = readdirSync(folder).map((name) => join(folder, name));
    const whole = readFileSync(path);
    const elsewhere = newFolder();
    storeIn(elsewhere).write("key", "tanh");
    const digest = createHash("sha256").update("tanh").digest();
    for (const bytes of [
      Buffer.concat([Buffer.from("tanh"), digest]),
      Buffer.from(`${digest.toString("hex")}\ntanh`),
      readFileSync(another),
      readFileSync(join(elsewhere, readdirSync(elsewhere)[0] as string)),
    ]) {
      writeFileSync(path, bytes);
      expect([store.read("key"), store.read("other")].filter((text) => text !== null)).toHaveLength(1);
    }
    writeFileSync(path, whole);
    expect([store.read("key"), store.read("other")]).toEqual(["sin", "tanh"]);
  });

  it("cannot be made to compute something else", () => {
    const folder = newFolder();
    testHost.planStore = { ...storeIn(folder), leastMs: 0 };
    try {
      const derivatives = (): { readonly planCached: boolean; readonly results: unknown } => {
        const f = compile(
          grad((x: Tensor) => x.sin().sum()),
          { memory: "min" },
        );
        return { planCached: f.program(tensor([0, 1])).planCached, results: f(tensor([0, 1])).toArray() };
      };
      const first = derivatives();
      expect(derivatives()).toEqual({ ...first, planCached: true });
      const paths = readdirSync(folder).map((name) => join(folder, name));
      for (const path of paths) {
        const file = readFileSync(path, "latin1");
        const changed = file.slice(file.indexOf("{"), file.lastIndexOf("}") + 1).replace('"cos"', '"tanh"');
        expect(changed).toContain('"tanh"');
        const digest = createHash("sha256").update(changed).digest();
        for (const forged of [`${digest.toString("hex")}\n${changed}`, `${changed}${digest.toString("latin1")}`]) {
          writeFileSync(path, Buffer.from(forged, "latin1"));
          expect(derivatives()).toEqual(first);
          expect(derivatives()).toEqual({ ...first, planCached: true });
        }
      }
    } finally {
      testHost.planStore = null;
    }
  });

  it("replace an existing file, and leave no temporary file", () => {
    const folder = newFolder();
    const store = storeIn(folder);
    for (const text of ["one", "two"]) store.write("key", text);
    expect(store.read("key")).toBe("two");
    expect(readdirSync(folder)).toHaveLength(1);
  });

  it("make room for others when they were used longest ago", () => {
    const folder = newFolder();
    const store = storeIn(folder, 4800);
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
    const store = storeIn(join(blocked, "below", "plans"));
    store.write("key", "text");
    expect(store.read("key")).toBeNull();
    const homeless = planStore(() => "no home", "p");
    homeless.write("key", "text");
    expect(homeless.read("key")).toBeNull();
  });

  it("are not cached by unbuilt sources, nor when switched off", () => {
    expect(systemPlanStore()).toBeNull();
    expect(plansFolder({ TIDEMARK_PLAN_CACHE: "off" })).toBeNull();
  });
});
