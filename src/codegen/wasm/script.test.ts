/** @file Loops, branches and numbers of scripts, run as WebAssembly; and how they are spread over functions. */
import { describe, expect, it } from "vitest";
import {
  choose,
  copy,
  type Int,
  int,
  intOp,
  type Local,
  loadAt,
  plus,
  read,
  repeatWhile,
  type Statement,
  sameInt,
  set,
  store,
  times,
} from "../script.ts";
import { Code, ModuleBuilder } from "./encoder.ts";
import { KernelLibrary } from "./kernel.ts";
import { ScriptEmitter } from "./script.ts";

/** Runs statements over a page of memory. */
function run(statements: readonly Statement[], fill: (memory: Int32Array) => void = () => {}) {
  const module = new ModuleBuilder();
  const code = new Code([]);
  new ScriptEmitter({ module, library: new KernelLibrary(module, { fma: false }) }, code).emit(statements);
  const main = module.add(code);
  module.export("run", main);
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1 });
  const words = new Int32Array(memory.buffer);
  fill(words);
  const instance = new WebAssembly.Instance(new WebAssembly.Module(module.finish(1)), { env: { memory } });
  (instance.exports.run as () => void)();
  return { words, functions: main + 1 };
}

const computed = (value: Int): number | undefined => run([store(int(0), value)]).words[0];

describe("numbers", () => {
  it("are wrapping arithmetic and signed comparisons", () => {
    expect(computed(intOp("add", int(2 ** 31 - 1), int(1)))).toBe(-(2 ** 31));
    expect(computed(intOp("sub", int(3), int(5)))).toBe(-2);
    expect(computed(intOp("div", int(17), int(5)))).toBe(3);
    expect(computed(intOp("lt", int(-1), int(0)))).toBe(1);
    expect(computed(intOp("le", int(1), int(0)))).toBe(0);
    expect(computed(intOp("and", int(6), int(3)))).toBe(2);
    expect(computed(intOp("eq", int(6), int(6)))).toBe(1);
  });

  it("load a word or one byte", () => {
    const loaded = run([store(int(4), loadAt(int(0))), store(int(8), loadAt(int(1), 1))], (m) =>
      m.fill(0x01020304, 0, 1),
    );
    expect([loaded.words[1], loaded.words[2]]).toEqual([0x01020304, 3]);
  });

  it("fold constants, which meet at the end of a sum", () => {
    const i: Local = { name: "i" };
    expect(plus(int(3), 4)).toEqual(int(7));
    expect(plus(plus(read(i), 3), 4)).toEqual(intOp("add", read(i), int(7)));
    expect(plus(int(3), read(i))).toEqual(plus(read(i), 3));
    expect(times(int(3), 4)).toEqual(int(12));
    expect(times(read(i), 1)).toEqual(read(i));
  });

  it("are the same where they are whatever locals hold; what is loaded may have changed", () => {
    const [i, j]: readonly Local[] = [{ name: "i" }, { name: "i" }];
    expect(sameInt(plus(read(i!), 4), plus(read(i!), 4))).toBe(true);
    expect(sameInt(read(i!), read(j!))).toBe(false);
    expect(sameInt(loadAt(int(0)), loadAt(int(0)))).toBe(false);
    expect(copy(plus(read(i!), 4), plus(read(i!), 4), 16)).toEqual([]);
    expect(copy(int(0), int(64), 0)).toEqual([]);
    expect(copy(int(0), int(64), 4)).toHaveLength(1);
  });
});

describe("statements", () => {
  it("loop and choose", () => {
    const i: Local = { name: "i" };
    const even = intOp("eq", intOp("and", read(i), int(1)), int(0));
    const at = times(read(i), 4);
    const { words } = run([
      set(i, int(0)),
      repeatWhile(intOp("lt", read(i), int(6)), [
        choose(even, [store(at, read(i))], [store(at, int(-1))]),
        set(i, plus(read(i), 1)),
      ]),
    ]);
    expect([...words.slice(0, 7)]).toEqual([0, -1, 2, -1, 4, -1, 0]);
  });

  it("of a long run of calls in a loop become functions of their own, which see the counter", () => {
    const i: Local = { name: "i" };
    // word k of row i + 1 is word k + 1 of row i
    const row = (n: Int): Int => times(n, 1301 * 4);
    const calls = Array.from({ length: 1300 }, (_, k) =>
      copy(plus(row(plus(read(i), 1)), 4 * k), plus(row(read(i)), 4 * (k + 1)), 4),
    ).flat();
    const { words, functions } = run(
      [set(i, int(0)), repeatWhile(intOp("lt", read(i), int(3)), [...calls, set(i, plus(read(i), 1))])],
      (memory) => {
        for (let k = 0; k < 1301; k++) memory[k] = k;
      },
    );
    expect([words[3 * 1301], words[3 * 1301 + 1200]]).toEqual([3, 1203]);
    // two of 512 calls, the rest in place
    expect(functions).toBe(3);
  });
});
