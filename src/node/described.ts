/** @file Target descriptions by key, for the built-in targets. */
import { nativeDescription } from "../codegen/native/description.ts";
import type { NativeEmitOptions } from "../codegen/native/options.ts";
import { wasmDescription } from "../codegen/wasm/description.ts";
import type { OWN_TARGETS } from "../runtime/choose-target.ts";
import type { TargetDescription } from "../target/description.ts";

type Described = Readonly<Record<(typeof OWN_TARGETS)[number], (options: unknown) => TargetDescription>>;

const DESCRIBED: Described = {
  wasm(options) {
    const { fma, threads } = options as { readonly fma: boolean; readonly threads: number };
    return wasmDescription(fma, threads);
  },
  native: (options) => nativeDescription(options as NativeEmitOptions),
};

/** The description with a key, which is a target's name and its options; null for other targets. */
export function descriptionOf(key: string): TargetDescription | null {
  const [name, ...options] = key.split(" ");
  const describe = Object.entries(DESCRIBED).find(([known]) => known === name)?.[1];
  return describe?.(JSON.parse(options.join(" "))) ?? null;
}
