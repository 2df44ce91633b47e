/** @file Lowering for no target in particular: no workspace, loops as they come. */
import { COMMON_ORDER, type LoweringTarget } from "./description.ts";

export const PLAIN_LOWERING: LoweringTarget = {
  arithmetic: { ...COMMON_ORDER, fusedMultiplyAdd: false, name: "plain" },
  workspace: () => 0,
  shapeLoops: (kernel) => kernel,
};
