/**
 * @file Lists of numbers without a million small arrays: list i is `items[from[i]]` up to `items[from[i + 1]]`.
 *
 *     from    0   2 2     5
 *     items   a b   c d e         lists: [a b] [] [c d e]
 */
export interface Lists {
  readonly from: Int32Array;
  readonly items: Int32Array;
}

/** `count` lists; `visit` calls `add(list, item)` for every item, twice over and in the same order both times. */
export function makeLists(count: number, visit: (add: (list: number, item: number) => void) => void): Lists {
  const from = new Int32Array(count + 1);
  visit((list) => {
    from[list + 1] = (from[list + 1] as number) + 1;
  });
  for (let i = 0; i < count; i++) from[i + 1] = (from[i + 1] as number) + (from[i] as number);
  const next = from.slice(0, count);
  const items = new Int32Array(from[count] as number);
  visit((list, item) => {
    const k = next[list] as number;
    items[k] = item;
    next[list] = k + 1;
  });
  return { from, items };
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

/** For every item, the lists that hold it, in order. */
export function inverse(lists: Lists, count: number): Lists {
  return makeLists(count, (add) => {
    for (let list = 0; list + 1 < lists.from.length; list++) {
      const end = lists.from[list + 1] as number;
      for (let k = lists.from[list] as number; k < end; k++) add(lists.items[k] as number, list);
    }
  });
}
