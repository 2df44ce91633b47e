/**
 * @file Block programs as a target: C that emulates a device of blocks of threads, on an arena with the alignment of one. With
 * the same fused multiply-add it gives the bits of `native` without Winograd's convolutions.
 */
import { BlockLibrary } from "../../src/codegen/block/print-c.ts";
import type { DeviceClass } from "../../src/codegen/block/program.ts";
import { blockWorkspace } from "../../src/codegen/block/schedule.ts";
import { nativeDescription } from "../../src/codegen/native/description.ts";
import type { NativeEmitOptions } from "../../src/codegen/native/options.ts";
import { emitNativeProgram } from "../../src/codegen/native/program.ts";
import { type Compiler, digest, systemCompiler } from "../../src/node/native/compiler.ts";
import { cTarget } from "../../src/node/native/target.ts";
import type { TargetAnswer } from "../../src/runtime/device.ts";
import { COMMON_ORDER, type TargetDescription } from "../../src/target/description.ts";
import { memorySpace } from "../../src/target/space.ts";
import { loweringFor } from "./blocks.ts";

function blocksDescription(options: NativeEmitOptions, device: DeviceClass): TargetDescription {
  return {
    ...nativeDescription(options),
    name: "blocks",
    key: `blocks ${JSON.stringify({ options, device })}`,
    spaces: [memorySpace(256)],
    storageTypes: loweringFor(device).storageTypes,
    arithmetic: { ...COMMON_ORDER, name: `blocks, ${device.fma ? "fused" : "plain"}`, fusedMultiplyAdd: device.fma },
    threads: undefined,
    workspace: (nest) => blockWorkspace(nest, device),
    shapeLoops: (kernel) => kernel,
  };
}

/** The system's compiler in less of a hurry for speed than for its own end. */
function quickCompiler(): Compiler | string {
  const found = systemCompiler();
  if (typeof found === "string") return found;
  const flags = found.flags.map((flag) => (flag === "-O3" ? "-O1" : flag));
  return { ...found, flags, identity: digest(found.identity, flags.join(" ")) };
}

/** `quick` is compiled in a moment and runs slowly. */
export function blocksTarget(
  device: DeviceClass,
  how: { readonly threads?: number; readonly quick?: boolean } = {},
): TargetAnswer {
  const { threads = 1, quick = false } = how;
  return cTarget(
    (compiler) => {
      const options: NativeEmitOptions = { lanes: compiler.lanes, fma: device.fma, threads };
      return {
        description: blocksDescription(options, device),
        options,
        uses: `blocks of ${device.threads} threads`,
        emit: (placed, how) => emitNativeProgram(placed.kernels, placed.copies, how, new BlockLibrary(device)),
      };
    },
    quick ? quickCompiler() : undefined,
  );
}
