/** @file An exported program as a modelled one: every value has the shape that following the program gives it. */

import type { ExportedModel } from "../../exchange/pt2/read.ts";
import type { Pt2Program } from "../../formats/pt2-program.ts";
import { traceFunction } from "../../trace/function.ts";
import { Tensor } from "../../trace/tensor.ts";
import type { EagerType } from "../torch/call.ts";
import type { EagerProgram, Loss } from "../torch/step.ts";
import { withoutPositionMasks } from "./position-masks.ts";
import { WIDE_CODE } from "./program-builder.ts";

/** PyTorch's numbers of element types, and one more: bytes of an element, and whether it is a float. */
const ELEMENTS: Readonly<Record<number, readonly [item: number, isFloat: boolean]>> = {
  1: [1, false],
  2: [1, false],
  3: [2, false],
  4: [4, false],
  5: [8, false],
  6: [2, true],
  7: [4, true],
  8: [8, true],
  12: [1, false],
  13: [2, true],
  28: [2, false],
  [WIDE_CODE]: [4, true],
};

export interface ExportedSettings {
  readonly sizes?: Readonly<Record<string, number>>;
  /** Bytes of a float; default: as recorded. */
  readonly floatBytes?: number | undefined;
  readonly loss?: Loss;
}

export function eagerProgram(model: ExportedModel, settings: ExportedSettings = {}): EagerProgram {
  const { types } = model.program;
  const values = tracedValues(model, settings.sizes ?? {});
  const typeOf = (name: string): EagerType | undefined => {
    const recorded = types.get(name);
    const value = values.get(name);
    if (!recorded || !(value instanceof Tensor)) return undefined;
    const [item, isFloat] = ELEMENTS[recorded.dtype] ?? [4, true];
    const isChosen = isFloat && recorded.dtype !== WIDE_CODE;
    return { shape: value.shape, isFloat, item: isChosen ? (settings.floatBytes ?? item) : item };
  };
  return {
    program: withoutPositionMasks(model.program),
    type: typeOf,
    number: (name) => {
      const value = values.get(name);
      return typeof value === "number" ? value : undefined;
    },
    storageOf: (value) => model.ownerOf(value) ?? value,
    loss: settings.loss ?? "squares",
  };
}

type Traced = ReadonlyMap<string, unknown>;

/** Values by name; of a recorded value without one, nothing is known. */
function tracedValues(model: ExportedModel, sizes: Readonly<Record<string, number>>): Traced {
  const found = new Map<string, unknown>();
  const specs = model.specs(sizes);
  const inputs = model.inputs.map(({ name }) => specs[name] as Tensor);
  traceFunction(
    (params: Record<string, Tensor>, ...given: Tensor[]) => {
      const values = model.values(params, given, { shapesOnly: true });
      for (const name of namesIn(model.program)) {
        const value = values(name);
        if (value !== undefined) found.set(name, value);
      }
      return given[0] as Tensor;
    },
    [model.params, ...inputs],
  );
  return found;
}

const namesIn = (program: Pt2Program): readonly string[] => [...program.types.keys(), ...symbolNames(program)];

/** Names of sizes that nodes compute. */
function symbolNames({ nodes }: Pt2Program): readonly string[] {
  return nodes.flatMap(({ outputs }) =>
    outputs.flatMap((output) => {
      const symbol = (output.as_sym_int ?? output.as_sym_float) as { readonly as_name?: string } | undefined;
      return symbol?.as_name ?? [];
    }),
  );
}
