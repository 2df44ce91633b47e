/**
 * @file A time-window index: placed items in order of a key (offset or top), so that those that conflict with an item,
 * that is, share a section with it, can be read off in that order. In one sorted list of all items most entries would
 * be skipped, since most items are short. So there are lists for windows of time, at a few scales. Windows of one scale
 * overlap by half, so an item no longer than half a window is contained in one of them:
 *
 *     time      ├───────────────────────────────┤
 *     scale 0   [ 0                             ]      everything
 *     scale 1   [ 0     |     ]     [ 2   |     ]      half a window is `stride` sections
 *                       [ 1   |     ]     [ 3   |
 *     item                    ├──┤                     its conflicting items are all in window 1
 *
 * An item is listed in every window that it touches, at every scale; a query uses the finest window that contains the
 * item.
 */

/** Items and the sections [lo, hi) that they cover, of `count`. */
export interface Spans {
  readonly n: number;
  readonly count: number;
  readonly lo: Int32Array;
  readonly hi: Int32Array;
}

/** Windows of a scale, at most, and how much finer each scale is than the one before. */
const MOST_WINDOWS = 512;
const FINER = 8;
/** The fewest sections per stride, and items per window, for which a scale pays. */
const LEAST_STRIDE = 4;
const LEAST_ITEMS = 48;

/** Sorted lists of one scale: that of window w is [base[w], base[w] + count[w]) of `list`. */
interface Scale {
  readonly stride: number;
  readonly base: Int32Array;
  readonly count: Int32Array;
  readonly list: Int32Array;
}

export class TimeWindowIndex {
  /** The answer of `conflicting`. */
  readonly result: Int32Array;
  /** Entries read so far, a measure of time. */
  work = 0;
  readonly #spans: Spans;
  readonly #key: Float64Array;
  /** Coarsest first. */
  readonly #scales: readonly Scale[];
  /** Per item, the scale used for its queries. */
  readonly #scaleOf: Uint8Array;

  /** `key` of an item must not change while it is in the index. */
  constructor(spans: Spans, key: Float64Array) {
    const { n, lo, hi } = spans;
    this.#spans = spans;
    this.#key = key;
    this.result = new Int32Array(n + 1);
    this.#scales = stridesFor(spans).map((stride) => scaleOf(spans, stride));
    this.#scaleOf = Uint8Array.from({ length: n }, (_, i) => {
      const length = (hi[i] as number) - (lo[i] as number);
      return this.#scales.reduce((finest, { stride }, k) => (length <= stride ? k : finest), 0);
    });
  }

  clear(): void {
    for (const { count } of this.#scales) count.fill(0);
  }

  /** Replaces everything by these items. */
  fill(items: Int32Array): void {
    const key = this.#key;
    const sorted = Int32Array.from(items).sort((a, b) => (key[a] as number) - (key[b] as number) || a - b);
    this.clear();
    for (const scale of this.#scales) {
      const { base, count, list } = scale;
      for (const i of sorted) {
        for (let w = firstWindow(this.#spans, scale, i), e = lastWindow(this.#spans, scale, i); w <= e; w++) {
          list[(base[w] as number) + (count[w] as number)] = i;
          count[w] = (count[w] as number) + 1;
        }
      }
    }
  }

  add(i: number): void {
    for (const scale of this.#scales) {
      const { base, count, list } = scale;
      for (let w = firstWindow(this.#spans, scale, i), e = lastWindow(this.#spans, scale, i); w <= e; w++) {
        const to = (base[w] as number) + (count[w] as number);
        const at = this.#position(list, i, base[w] as number, to);
        list.copyWithin(at + 1, at, to);
        list[at] = i;
        count[w] = (count[w] as number) + 1;
      }
    }
  }

  remove(i: number): void {
    for (const scale of this.#scales) {
      const { base, count, list } = scale;
      for (let w = firstWindow(this.#spans, scale, i), e = lastWindow(this.#spans, scale, i); w <= e; w++) {
        const to = (base[w] as number) + (count[w] as number);
        const at = this.#position(list, i, base[w] as number, to);
        list.copyWithin(at, at + 1, to);
        count[w] = (count[w] as number) - 1;
      }
    }
  }

  /** Fills `result` with the items that share a section with item i, in order of the key; their number. */
  conflicting(i: number): number {
    const { lo, hi } = this.#spans;
    const [start, end] = [lo[i] as number, hi[i] as number];
    const { stride, base, count, list } = this.#scales[this.#scaleOf[i] as number] as Scale;
    const result = this.result;
    const w = stride === 0 ? 0 : Math.floor(start / stride);
    const first = base[w] as number;
    const stop = first + (count[w] as number);
    this.work += stop - first;
    let size = 0;
    for (let p = first; p < stop; p++) {
      const j = list[p] as number;
      result[size] = j;
      // one more if lo[j] < end and start < hi[j]: both differences have their sign bit set
      size += (((lo[j] as number) - end) & (start - (hi[j] as number))) >>> 31;
    }
    return size;
  }

  /** The position of item i in list[from, to), or its insertion point; the list is sorted by key, then by item. */
  #position(list: Int32Array, i: number, from: number, to: number): number {
    const key = this.#key;
    const value = key[i] as number;
    let [low, high] = [from, to];
    while (low < high) {
      const mid = (low + high) >> 1;
      const j = list[mid] as number;
      const other = key[j] as number;
      if (other > value || (other === value && j >= i)) high = mid;
      else low = mid + 1;
    }
    return low;
  }
}

function firstWindow({ lo }: Spans, { stride }: Pick<Scale, "stride">, i: number): number {
  return stride === 0 ? 0 : Math.max(0, Math.floor((lo[i] as number) / stride) - 1);
}

function lastWindow({ hi }: Spans, { stride }: Pick<Scale, "stride">, i: number): number {
  return stride === 0 ? 0 : Math.floor(((hi[i] as number) - 1) / stride);
}

/** Strides of all scales; 0 for the one window of everything. */
function stridesFor({ n, count }: Spans): number[] {
  const strides = [0];
  for (let windows = FINER; windows <= Math.min(MOST_WINDOWS, n / LEAST_ITEMS); windows *= FINER) {
    const stride = Math.ceil(count / windows);
    if (stride >= LEAST_STRIDE) strides.push(stride);
  }
  return strides;
}

function scaleOf(spans: Spans, stride: number): Scale {
  const windows = stride === 0 ? 1 : Math.floor((spans.count - 1) / stride) + 1;
  const base = new Int32Array(windows + 1);
  for (let i = 0; i < spans.n; i++) {
    for (let w = firstWindow(spans, { stride }, i), e = lastWindow(spans, { stride }, i); w <= e; w++) {
      base[w + 1] = (base[w + 1] as number) + 1;
    }
  }
  for (let w = 0; w < windows; w++) base[w + 1] = (base[w + 1] as number) + (base[w] as number);
  return { stride, base, count: new Int32Array(windows), list: new Int32Array(base[windows] as number) };
}
