/**
 * @file Lists of numbers in two flat arrays: list i is `items[from[i]]` up to `items[from[i + 1]]`.
 *
 *     from    0   2 2     5
 *     items   a b   c d e         lists: [a b] [] [c d e]
 */
export interface Lists {
  readonly from: Int32Array;
  readonly items: Int32Array;
}

/** `count` lists; `visit` calls `add(list, item)` for every item. Items of a list stay in the order of their calls. */
export function makeLists(count: number, visit: (add: (list: number, item: number) => void) => void): Lists {
  const [lists, items]: [number[], number[]] = [[], []];
  visit((list, item) => {
    lists.push(list);
    items.push(item);
  });
  return sorted(count, lists, items);
}

/** Puts item k into list `lists[k]`. */
function sorted(count: number, lists: ArrayLike<number>, items: ArrayLike<number>): Lists {
  const from = new Int32Array(count + 1);
  for (let k = 0; k < lists.length; k++) {
    const after = (lists[k] as number) + 1;
    from[after] = (from[after] as number) + 1;
  }
  for (let i = 0; i < count; i++) from[i + 1] = (from[i + 1] as number) + (from[i] as number);
  const next = from.slice(0, count);
  const placed = new Int32Array(items.length);
  for (let k = 0; k < lists.length; k++) {
    const list = lists[k] as number;
    const place = next[list] as number;
    placed[place] = items[k] as number;
    next[list] = place + 1;
  }
  return { from, items: placed };
}

/** Where list i begins and where list i - 1 ends. */
export function fromOf(lists: Lists, i: number): number {
  return lists.from[i] as number;
}

export function lengthOf(lists: Lists, i: number): number {
  return (lists.from[i + 1] as number) - (lists.from[i] as number);
}

export function lengthsOf(lists: Lists): Int32Array {
  const lengths = new Int32Array(lists.from.length - 1);
  for (let i = 0; i < lengths.length; i++) lengths[i] = lengthOf(lists, i);
  return lengths;
}

export function listOf(lists: Lists, i: number): Int32Array {
  return lists.items.subarray(lists.from[i], lists.from[i + 1]);
}

/** For every item, the lists that contain it, in order. */
export function inverse(lists: Lists, count: number): Lists {
  const holders = new Int32Array(lists.items.length);
  for (let list = 0; list + 1 < lists.from.length; list++) {
    holders.fill(list, fromOf(lists, list), fromOf(lists, list + 1));
  }
  return sorted(count, lists.items, holders);
}
