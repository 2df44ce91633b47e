/**
 * @file An order of groups that is kept while they are merged. Every group ranks above those it reads; merging two must
 * not create a cycle, which the order detects cheaply: a detour from one to the other runs through ranks between theirs.
 *
 *   from ──→ a ──→ to      merging `from` and `to` would put `a` both after and before the two
 *     ╰─────────────╯
 *
 * After D. J. Pearce, P. H. J. Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006.
 */
import { at } from "../base/invariant.ts";
import type { Group } from "./fuse-groups.ts";

/**
 * Most groups that are searched for a detour between two. If more could run between them, the two are not merged: the
 * search would take longer, and merging distant work keeps its operands alive in the meantime.
 */
const MOST_BETWEEN = 32;

/** The groups that `from` leads to and that rank below `to`; null if one of them leads to `to`: a cycle. */
export function ledTo(from: Group, to: Group): ReadonlySet<Group> | null {
  const seen = new Set<Group>();
  const stack = [from];
  for (let group = stack.pop(); group; group = stack.pop()) {
    for (const { out } of group.members) {
      for (const edge of out) {
        const next = edge.to.group;
        if (next === to && group !== from) return null;
        if (next === group || next === to || seen.has(next) || next.rank > to.rank) continue;
        if (seen.size === MOST_BETWEEN) return null;
        seen.add(next);
        stack.push(next);
      }
    }
  }
  return seen;
}

/** The groups that lead to `to` and rank above `from`. */
function leadingTo(to: Group, from: Group): ReadonlySet<Group> {
  const seen = new Set<Group>();
  const stack = [to];
  for (let group = stack.pop(); group; group = stack.pop()) {
    for (const member of group.members) {
      for (const edge of member.in) {
        const next = edge.from.group;
        if (next === to || next === from || seen.has(next) || next.rank < from.rank) continue;
        seen.add(next);
        stack.push(next);
      }
    }
  }
  return seen;
}

/**
 * Gives `from` and `to` one rank: of the groups ranked between them, those that lead to `to` go before the two and those that
 * `from` leads to (`after`) go after, all within the ranks that they had; the rest stays.
 *
 *   from a b c to   →   b (from to) a c      when `from` leads to a and c
 */
export function rankTogether(from: Group, to: Group, after: ReadonlySet<Group>): void {
  if (after.size === 0) {
    // `from` can wait for `to`
    from.rank = to.rank;
    return;
  }
  const byRank = (a: Group, b: Group): number => a.rank - b.rank;
  const before = [...leadingTo(to, from)].sort(byRank);
  const behind = [...after].sort(byRank);
  const ranks = [from, to, ...before, ...behind].map((group) => group.rank).sort((a, b) => a - b);
  for (const [i, group] of [...before, from].entries()) group.rank = at(ranks, i);
  for (const [i, group] of behind.entries()) group.rank = at(ranks, before.length + 2 + i);
  to.rank = from.rank;
}
