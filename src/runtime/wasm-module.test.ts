/** @file What the engine does not take is an error that says so: real modules that are too large, and memories. */
import { describe, expect, it } from "vitest";
import type { PlainBytes } from "../base/bytes.ts";
import { TidemarkError } from "../base/errors.ts";
import { ByteBuffer, LARGEST_FUNCTION } from "../codegen/wasm/byte-buffer.ts";
import { Code, ModuleBuilder } from "../codegen/wasm/encoder.ts";
import { allocated } from "./device.ts";
import { instanceOf, moduleFrom } from "./wasm-module.ts";

function refusal(run: () => unknown): TidemarkError {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(TidemarkError);
    return error as TidemarkError;
  }
  throw new Error("nothing was refused");
}

/** A module of one function. */
function moduleOf(write: (code: Code) => void): PlainBytes {
  const module = new ModuleBuilder();
  const code = new Code([]);
  write(code);
  module.export("run", module.add(code));
  return module.finish(1);
}

describe("a module", () => {
  it("that the engine takes runs", () => {
    const memory = new WebAssembly.Memory({ initial: 1 });
    const { exports } = instanceOf(moduleFrom(moduleOf((code) => code.i32Const(8).i32Const(5).i32Store())), { memory });
    (exports.run as () => void)();
    expect(new Int32Array(memory.buffer)[2]).toBe(5);
  });

  it("with more locals than the engine takes is refused in our words", () => {
    const bytes = moduleOf((code) => {
      for (let i = 0; i < 60_000; i++) code.local("v128");
    });
    const { code, message } = refusal(() => moduleFrom(bytes));
    expect(code).toBe("TargetUnsupported");
    expect(message).toMatch(/^TargetUnsupported: the engine refused the program's code of [\d,]+ bytes: .*local/);
    expect(message).toContain("\n  help: split the program into functions");
  });

  it("that does not fit its memory is refused in our words", () => {
    const module = moduleFrom(moduleOf(() => undefined));
    const { code, message } = refusal(() => instanceOf(module, {}));
    expect(code).toBe("TargetUnsupported");
    expect(message).toMatch(/^TargetUnsupported: the engine refused to load the program's code: /);
  });
});

describe("code", () => {
  it("of one function ends where engines take no more, and not in a list that cannot grow", () => {
    const grow = (): void => {
      const code = new Code([]);
      for (;;) code.v128Const(new Uint8Array(16));
    };
    expect(refusal(grow).message).toMatchInlineSnapshot(`
      "TargetUnsupported: the code of one kernel is beyond the 7,654,321 bytes that engines take
        help: split the program into functions that are compiled separately, or use the target native"
    `);
  });

  it("of just that size is there to the last byte", () => {
    const bytes = new ByteBuffer("it", LARGEST_FUNCTION);
    for (let i = 0; i < LARGEST_FUNCTION; i++) bytes.push(i & 255);
    expect(bytes.length).toBe(LARGEST_FUNCTION);
    expect(bytes.view().at(-1)).toBe((LARGEST_FUNCTION - 1) & 255);
    expect(() => bytes.push(0)).toThrow(TidemarkError);
  });
});

describe("a memory", () => {
  it("that cannot be had is refused in our words", () => {
    const { code, message } = refusal(() => allocated(2 ** 52, () => new ArrayBuffer(2 ** 52)));
    expect(code).toBe("TargetUnsupported");
    expect(message).toContain("TargetUnsupported: an arena of 4,503,599,627,370,496 bytes cannot be allocated: ");
    expect(message).toContain("\n  help: plan within a budget (compile(fn, { memory })), or use smaller batches");
  });
});
