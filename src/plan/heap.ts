/** @file A binary heap of steps by a key, smallest first, equal keys by position: the queue of steps ready to run. */

interface Entry {
  readonly key: number;
  readonly step: number;
}

export class StepHeap {
  readonly #items: Entry[] = [];

  push(step: number, key = 0): void {
    const items = this.#items;
    const entry = { key, step };
    let i = items.length;
    items.push(entry);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      const above = items[parent] as Entry;
      if (!before(entry, above)) break;
      items[i] = above;
      i = parent;
    }
    items[i] = entry;
  }

  pop(): number | undefined {
    const items = this.#items;
    const top = items[0];
    const last = items.pop();
    if (top === undefined || last === undefined || items.length === 0) return top?.step;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && before(items[child + 1] as Entry, items[child] as Entry)) child += 1;
      if (!before(items[child] as Entry, last)) break;
      items[i] = items[child] as Entry;
      i = child;
    }
    items[i] = last;
    return top.step;
  }
}

function before(a: Entry, b: Entry): boolean {
  return a.key < b.key || (a.key === b.key && a.step < b.step);
}
