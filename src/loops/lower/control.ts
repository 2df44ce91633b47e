/**
 * @file Loops and branches as plan steps and as code. A loop is one step: it reads its inputs, writes its results, and
 * its workspace is that of its body. Carries are stored in the loop's final results from the first iteration on; if a
 * carry's initial value is read for the last time, the planner may give both the same storage, and nothing is copied:
 *
 *     inputs    c ─ copied unless in place ─╮        xs [ row │ row │ … ]     k
 *                                           ▼                  ▼              ▼
 *     results   c  ◄───────────────── body's slot      body's slot      body's slot
 *               ys [ row │ row │ … ] ◄─ body's slot
 *
 * A branch is the same without iterations: an operand that some region returns unchanged shares the storage of that
 * result.
 */

import { at, InternalError } from "../../base/invariant.ts";
import {
  choose,
  int,
  intOp,
  type Local,
  loadAt,
  plus,
  read,
  repeatWhile,
  type Statement,
  set,
} from "../../codegen/script.ts";
import type { Control, Loop } from "../../ir/control.ts";
import type { Node } from "../../ir/graph.ts";
import { sameType } from "../../ir/type.ts";
import { isBool } from "../../kernel/dtype.ts";
import { Binding, CELL_BYTES, controlStep, fillSlots, iterationOf, iterationsOf, zip } from "./binding.ts";
import { type Body, type LoweredStep, type LowerNode, planBody } from "./body.ts";
import { lowerRecord } from "./record.ts";
import { lowerRewind } from "./rewind.ts";
import { lowerWhile } from "./while.ts";

/** The step and code of a loop or branch. */
export function lowerControl(node: Node, control: Control, lowerNode: LowerNode): LoweredStep {
  switch (control.kind) {
    case "loop": {
      const { loop } = control;
      if (loop.test) return lowerWhile(node, loop, lowerNode);
      return loop.recording ? lowerRecord(node, loop, loop.recording, lowerNode) : lowerScan(node, loop, lowerNode);
    }
    case "reversal":
      return lowerRewind(node, control.reversal, lowerNode);
    case "branch":
      return lowerSwitch(node, lowerNode);
  }
}

function lowerScan(node: Node, parts: Loop, lowerNode: LowerNode): LoweredStep {
  const { length, reverse } = parts;
  const { carries, count, last } = parts;
  const body = planBody(parts.body, parts.body.params.slice(1, 1 + carries.length), lowerNode);
  const pairs = zip(carries, last);
  const step = controlStep(node, [body], [body.workspaceBytes, CELL_BYTES], pairs);
  return {
    step,
    statements(address, [workspace = int(0), cell = int(0)]) {
      const [i, iterations]: readonly Local[] = [{ name: "i" }, { name: "turns" }];
      if (!i || !iterations) return [];
      const run = iterationOf(body, parts, i, { address, workspace, cell });
      const loop = reverse
        ? [set(i, read(iterations)), repeatWhile(intOp("lt", int(0), read(i)), [set(i, plus(read(i), -1)), ...run])]
        : [set(i, int(0)), repeatWhile(intOp("lt", read(i), read(iterations)), [...run, set(i, plus(read(i), 1))])];
      return [...iterationsOf(count, length, iterations, address), ...fillSlots(pairs, address), ...loop];
    },
  };
}

/** [operand, result] positions where some region returns the operand unchanged as that result. */
function unchangedOperands(node: Node): readonly (readonly [number, number])[] {
  const pairs: (readonly [number, number])[] = [];
  node.outputs.forEach((output, r) => {
    for (const { params, results } of node.regions) {
      const operand = params.indexOf(at(results, r));
      const free = operand >= 0 && !pairs.some(([o, out]) => o === operand || out === r);
      if (free && sameType(at(params, operand).type, output.type)) pairs.push([operand, r]);
    }
  });
  return pairs;
}

function lowerSwitch(node: Node, lowerNode: LowerNode): LoweredStep {
  const [index, ...operands] = node.inputs;
  if (!index) throw new InternalError("switch has no index");
  const pairs = unchangedOperands(node);
  const resultOf = new Map(pairs);
  const operandOf = new Map(pairs.map(([operand, result]) => [result, operand]));
  const bodies = node.regions.map((region) => {
    const replaced = region.results.map((_, r) => region.params[operandOf.get(r) ?? -1]);
    return planBody(region, replaced, lowerNode);
  });
  const shared = pairs.map(([operand, result]) => [at(operands, operand), at(node.outputs, result)] as const);
  const workspaceBytes = Math.max(...bodies.map((body) => body.workspaceBytes));
  return {
    step: controlStep(node, bodies, [workspaceBytes], shared),
    statements(address, [workspace = int(0)]) {
      const chosen: Local = { name: "chosen" };
      const run = (body: Body): readonly Statement[] => {
        const places = operands.map((operand, o) => address(node.outputs[resultOf.get(o) ?? -1] ?? operand));
        const binding = new Binding().bind(body.region.params, places).bind(body.slots, node.outputs.map(address));
        return body.statements(binding.of, workspace);
      };
      const number = loadAt(address(index), isBool(index.type.dtype) ? 1 : 4);
      const branches = bodies.map(run);
      const tree = branches.reduceRight((rest, branch, n) =>
        n === bodies.length - 1 ? branch : [choose(intOp("le", read(chosen), int(n)), branch, rest)],
      );
      return [set(chosen, number), ...fillSlots(shared, address), ...tree];
    },
  };
}
