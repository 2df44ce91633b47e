/**
 * @file A `while` that holds states for its reverse (ops/record-while.ts), as a step and as code. Before each turn the
 * state goes to the spare row of `held`; when the turn after it begins, the keeper (keeper.ts) decides whether it stays:
 *
 *     test ─ offer s₀ ─ copy s₁ ─ body ─ test ─ offer s₁ ─ copy s₂ ─ body ─ test ─ end: s₂ is in the spare row
 */
import { at } from "../../base/invariant.ts";
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
  set,
  store,
} from "../../codegen/script.ts";
import type { Node } from "../../ir/graph.ts";
import { byteLength } from "../../ir/type.ts";
import { MOST_TURNS } from "../../ops/loops.ts";
import { type RecordWhileAttrs, recordWhileParts } from "../../ops/record-while.ts";
import { Binding, CELL_BYTES, controlStep, fillSlots, rowsAt, turnOf, zip } from "./binding.ts";
import { planBody, type Unit, type UnitOf } from "./body.ts";
import { OnlineKeeper, tableBytes } from "./keeper.ts";

export function recordWhileUnit(node: Node, unitOf: UnitOf): Unit {
  const parts = recordWhileParts(node);
  const { length, slots } = node.attrs as RecordWhileAttrs;
  const { carries, consts, last, turns, held, places, kept } = parts;
  const body = planBody(parts.body, parts.body.params.slice(1, 1 + carries.length), unitOf);
  const test = planBody(parts.test, [undefined], unitOf);
  const pairs = zip(carries, last);
  const workspaceBytes = Math.max(body.workspaceBytes, test.workspaceBytes);
  return {
    step: controlStep(node, [test, body], [workspaceBytes, CELL_BYTES, tableBytes(slots)], pairs),
    statements(address, [workspace = int(0), cell = int(0), table = int(0)]) {
      const [i, goes]: readonly [Local, Local] = [{ name: "i" }, { name: "goes" }];
      const keeper = new OnlineKeeper(slots, table);
      const found = plus(cell, 4);
      const binding = new Binding()
        .bind(parts.test.params, [...last.map(address), ...consts.map(address)])
        .bind(test.slots, [found]);
      const more = intOp("lt", read(i), int(length === 0 ? MOST_TURNS : length));
      const spare = (): readonly Int[] => rowsAt(held, slots + 1, read(keeper.spare), address);
      const save = (): readonly Statement[] =>
        spare().flatMap((row, n) => {
          const carry = at(last, at(kept, n));
          return copy(row, address(carry), byteLength(carry.type));
        });
      return [
        ...fillSlots(pairs, address),
        ...keeper.begin(),
        set(i, int(0)),
        set(goes, int(1)),
        repeatWhile(read(goes), [
          ...test.statements(binding.of, workspace),
          set(goes, intOp("and", loadAt(found, 1), more)),
          choose(read(goes), [
            choose(intOp("lt", int(0), read(i)), keeper.offer(plus(read(i), -1))),
            ...save(),
            ...turnOf(body, parts, length, i, address, [workspace, cell]),
            set(i, plus(read(i), 1)),
          ]),
        ]),
        ...keeper.finish(address(places)),
        store(address(turns), read(i)),
      ];
    },
  };
}
