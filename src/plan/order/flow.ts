/**
 * @file Maximum flow by Dinic's algorithm: layers by breadth-first search, then paths along layers until none is left.
 * Edges come in pairs, e and e ^ 1, one for each direction; what flows along one may flow back along the other.
 */
export class Flow {
  #nodes: number;
  #credit: number;
  /** Per edge: its target, residual capacity, the next edge of the same node. Per node: its first edge. */
  readonly #to: number[] = [];
  readonly #left: number[] = [];
  readonly #next: number[] = [];
  readonly #first: number[];

  /** `credit`: the number of edges that may be visited. */
  constructor(nodes: number, credit: number) {
    this.#nodes = nodes;
    this.#credit = credit;
    this.#first = new Array<number>(nodes).fill(-1);
  }

  addNode(): number {
    this.#first.push(-1);
    this.#nodes += 1;
    return this.#nodes - 1;
  }

  addEdge(from: number, to: number, capacity: number): void {
    const edge = this.#to.length;
    this.#to.push(to, from);
    this.#left.push(capacity, 0);
    this.#next.push(this.#first[from] as number, this.#first[to] as number);
    this.#first[from] = edge;
    this.#first[to] = edge + 1;
  }

  /** Edge visits left. */
  get credit(): number {
    return this.#credit;
  }

  /** Null if the credit runs out first. */
  maximum(source: number, sink: number): number | null {
    let total = 0;
    for (;;) {
      const level = this.#layers(source);
      if ((level[sink] as number) < 0) return this.#credit < 0 ? null : total;
      const current = new Int32Array(this.#first);
      for (let pushed = this.#push(source, sink, level, current); pushed > 0; ) {
        total += pushed;
        pushed = this.#push(source, sink, level, current);
      }
      if (this.#credit < 0) return null;
    }
  }

  /** Nodes reachable from the source in the residual network. */
  reachedFrom(source: number): Uint8Array {
    const level = this.#layers(source);
    const reached = new Uint8Array(this.#nodes);
    for (let node = 0; node < this.#nodes; node++) reached[node] = (level[node] as number) < 0 ? 0 : 1;
    return reached;
  }

  /** Nodes from which the sink is reachable in the residual network. */
  reaching(sink: number): Uint8Array {
    const seen = new Uint8Array(this.#nodes);
    seen[sink] = 1;
    const stack = [sink];
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      for (let e = this.#first[node] as number; e >= 0; e = this.#next[e] as number) {
        const before = this.#to[e] as number;
        if (seen[before] || (this.#left[e ^ 1] as number) <= 0) continue;
        seen[before] = 1;
        stack.push(before);
      }
    }
    return seen;
  }

  #layers(source: number): Int32Array {
    const level = new Int32Array(this.#nodes).fill(-1);
    level[source] = 0;
    const queue = [source];
    for (let head = 0; head < queue.length; head++) {
      const node = queue[head] as number;
      for (let e = this.#first[node] as number; e >= 0; e = this.#next[e] as number) {
        this.#credit -= 1;
        const to = this.#to[e] as number;
        if ((level[to] as number) >= 0 || (this.#left[e] as number) <= 0) continue;
        level[to] = (level[node] as number) + 1;
        queue.push(to);
      }
    }
    return level;
  }

  /** One path along the layers, without recursion: paths may be as long as the program. */
  #push(source: number, sink: number, level: Int32Array, current: Int32Array): number {
    const path: number[] = [];
    let node = source;
    while (node !== sink) {
      const e = current[node] as number;
      this.#credit -= 1;
      if (this.#credit < 0) return 0;
      if (e < 0) {
        const back = path.pop();
        if (back === undefined) return 0;
        node = this.#to[back ^ 1] as number;
        current[node] = this.#next[current[node] as number] as number;
      } else if ((this.#left[e] as number) > 0 && level[this.#to[e] as number] === (level[node] as number) + 1) {
        path.push(e);
        node = this.#to[e] as number;
      } else {
        current[node] = this.#next[e] as number;
      }
    }
    const amount = path.reduce((least, e) => Math.min(least, this.#left[e] as number), Number.POSITIVE_INFINITY);
    for (const e of path) {
      this.#left[e] = (this.#left[e] as number) - amount;
      this.#left[e ^ 1] = (this.#left[e ^ 1] as number) + amount;
    }
    return amount;
  }
}
