/**
 * @file The step and code of a loop that runs while a test is true. If it keeps states for its reverse (ops/record.ts),
 * it copies the state before each iteration to the spare row of the store; when the next iteration begins, the keeper
 * (keeper.ts) decides whether to keep that state:
 *
 *     test ─ offer s₀ ─ copy s₁ ─ body ─ test ─ offer s₁ ─ copy s₂ ─ body ─ test ─ end: s₂ is in the spare row
 */
import { at, invariant } from "../../base/invariant.ts";
import {
  choose,
  copy,
  type Int,
  int,
  intOp,
  type Local,
  loadAt,
  plus,
  store as put,
  read,
  repeatWhile,
  type Statement,
  set,
} from "../../codegen/script.ts";
import type { Loop, Recording } from "../../ir/control.ts";
import type { Node, Value } from "../../ir/graph.ts";
import { byteLength } from "../../ir/type.ts";
import { MOST_ITERATIONS } from "../../ops/loops.ts";
import { Binding, CELL_BYTES, controlStep, fillSlots, iterationOf, rowsAt, zip } from "./binding.ts";
import { type LoweredStep, type LowerNode, planBody } from "./body.ts";
import { OnlineKeeper, tableBytes } from "./keeper.ts";

/** Statements around the iterations of a loop that keeps states. */
interface Keeping {
  readonly begin: readonly Statement[];
  /** Before iteration i. */
  readonly before: readonly Statement[];
  readonly finish: readonly Statement[];
}

const NOTHING: Keeping = { begin: [], before: [], finish: [] };

function keeping(
  { states, store, positions, checkpoints }: Recording,
  last: readonly Value[],
  i: Local,
  [table, address]: readonly [Int, (value: Value) => Int],
): Keeping {
  const keeper = new OnlineKeeper(checkpoints, table);
  const spare = rowsAt(store, checkpoints + 1, read(keeper.spare), address);
  const save = spare.flatMap((row, n) => {
    const carry = at(last, at(states, n));
    return copy(row, address(carry), byteLength(carry.type));
  });
  return {
    begin: keeper.begin(),
    before: [choose(intOp("lt", int(0), read(i)), keeper.offer(plus(read(i), -1))), ...save],
    finish: keeper.finish(address(positions)),
  };
}

export function lowerWhile(node: Node, parts: Loop, lowerNode: LowerNode): LoweredStep {
  const { carries, consts, last, iterations, length, recording } = parts;
  invariant(parts.test && iterations, () => "a loop without a test has a number of iterations");
  const body = planBody(parts.body, parts.body.params.slice(1, 1 + carries.length), lowerNode);
  const test = planBody(parts.test, [undefined], lowerNode);
  const pairs = zip(carries, last);
  const workspaceBytes = Math.max(body.workspaceBytes, test.workspaceBytes);
  const tables = recording ? [tableBytes(recording.checkpoints)] : [];
  return {
    step: controlStep(node, [test, body], [workspaceBytes, CELL_BYTES, ...tables], pairs),
    statements(address, [workspace = int(0), cell = int(0), table = int(0)]) {
      const [i, goes]: readonly [Local, Local] = [{ name: "i" }, { name: "goes" }];
      const keeps = recording ? keeping(recording, last, i, [table, address]) : NOTHING;
      const result = plus(cell, 4);
      const binding = new Binding()
        .bind(test.region.params, [...last.map(address), ...consts.map(address)])
        .bind(test.slots, [result]);
      const more = intOp("lt", read(i), int(length === 0 ? MOST_ITERATIONS : length));
      return [
        ...fillSlots(pairs, address),
        ...keeps.begin,
        set(i, int(0)),
        set(goes, int(1)),
        repeatWhile(read(goes), [
          ...test.statements(binding.of, workspace),
          set(goes, intOp("and", loadAt(result, 1), more)),
          choose(read(goes), [
            ...keeps.before,
            ...iterationOf(body, parts, i, { address, workspace, cell }),
            set(i, plus(read(i), 1)),
          ]),
        ]),
        ...keeps.finish,
        put(address(iterations), read(i)),
      ];
    },
  };
}
