/**
 * @file What is placed, sorted by offset and by top, so that the contemporaries of an item can be read off in order.
 * Sorting them anew for every question would take most of the time of a search that asks a hundred thousand times a
 * second; one sorted list of everything would be read mostly in vain, since most items are short. So there are lists for
 * windows of time, at a few scales. Windows of one scale overlap by half, so an item that is no longer than half a window
 * lies in one of them as a whole:
 *
 *     time      ├───────────────────────────────┤
 *     scale 0   [ 0                             ]      everything
 *     scale 1   [ 0     |     ]     [ 2   |     ]      half a window is `stride` sections
 *                       [ 1   |     ]     [ 3   |
 *     item                    ├──┤                     its contemporaries are all in window 1
 *
 * An item is listed in every window that it touches, at every scale; it asks in the finest window that holds it.
 */

/** Items and the sections [lo, hi) that they cover, of `count`. */
export interface Spans {
  readonly n: number;
  readonly count: number;
  readonly size: Float64Array;
  readonly lo: Int32Array;
  readonly hi: Int32Array;
}

/** Windows of a scale, at most, and how much coarser the next scale is. */
const FINEST = 512;
const COARSER = 8;
/** Fewer sections than this to a stride are not worth a scale. */
const LEAST_STRIDE = 4;

/** Sorted lists of one scale: those of window w are [base[w], base[w] + count[w]) of each order; `byTop` if wanted. */
interface Scale {
  readonly stride: number;
  readonly base: Int32Array;
  readonly count: Int32Array;
  readonly byOffset: Int32Array;
  readonly byTop: Int32Array;
}

export class Shelves {
  readonly offset: Float64Array;
  readonly top: Float64Array;
  readonly inside: Uint8Array;
  /** The answer of `around`: contemporaries by offset and by top. */
  readonly byOffset: Int32Array;
  readonly byTop: Int32Array;
  /** Entries read so far, a measure of time. */
  work = 0;
  readonly #spans: Spans;
  /** Coarsest first. */
  readonly #scales: readonly Scale[];
  /** Per item, the scale in which it asks. */
  readonly #scaleOf: Uint8Array;

  constructor(spans: Spans, withTops: boolean) {
    const { n, count, lo, hi } = spans;
    this.#spans = spans;
    this.offset = new Float64Array(n);
    this.top = new Float64Array(n);
    this.inside = new Uint8Array(n);
    this.byOffset = new Int32Array(n + 1);
    this.byTop = new Int32Array(n + 1);
    this.#scales = stridesFor(n, count).map((stride) => scaleOf(spans, stride, withTops));
    this.#scaleOf = Uint8Array.from({ length: n }, (_, i) => {
      const length = (hi[i] as number) - (lo[i] as number);
      return this.#scales.reduce((finest, { stride }, k) => (length <= stride ? k : finest), 0);
    });
  }

  clear(): void {
    this.inside.fill(0);
    for (const { count } of this.#scales) count.fill(0);
  }

  /** Places many items at once. */
  fill(items: Int32Array): void {
    const { offset, top } = this;
    const { size } = this.#spans;
    for (const i of items) {
      top[i] = (offset[i] as number) + (size[i] as number);
      this.inside[i] = 1;
    }
    const append = (order: Int32Array, list: "byOffset" | "byTop"): void => {
      for (const scale of this.#scales) {
        scale.count.fill(0);
        for (const i of order) {
          for (let w = this.#first(scale, i), e = this.#last(scale, i); w <= e; w++) {
            scale[list][(scale.base[w] as number) + (scale.count[w] as number)] = i;
            scale.count[w] = (scale.count[w] as number) + 1;
          }
        }
      }
    };
    append(
      Int32Array.from(items).sort((a, b) => (offset[a] as number) - (offset[b] as number) || a - b),
      "byOffset",
    );
    append(
      Int32Array.from(items).sort((a, b) => (top[a] as number) - (top[b] as number) || a - b),
      "byTop",
    );
  }

  put(i: number, offset: number): void {
    this.offset[i] = offset;
    this.top[i] = offset + (this.#spans.size[i] as number);
    this.inside[i] = 1;
    for (const scale of this.#scales) {
      for (let w = this.#first(scale, i), e = this.#last(scale, i); w <= e; w++) {
        const from = scale.base[w] as number;
        const to = from + (scale.count[w] as number);
        insert(scale.byOffset, this.offset, i, from, to);
        if (scale.byTop.length > 0) insert(scale.byTop, this.top, i, from, to);
        scale.count[w] = to - from + 1;
      }
    }
  }

  take(i: number): void {
    this.inside[i] = 0;
    for (const scale of this.#scales) {
      for (let w = this.#first(scale, i), e = this.#last(scale, i); w <= e; w++) {
        const from = scale.base[w] as number;
        const to = from + (scale.count[w] as number);
        remove(scale.byOffset, this.offset, i, from, to);
        remove(scale.byTop, this.top, i, from, to);
        scale.count[w] = to - from - 1;
      }
    }
  }

  /** Fills `byOffset` with what is placed and shares a section with item i; how many that are. */
  around(i: number): number {
    const scale = this.#scales[this.#scaleOf[i] as number] as Scale;
    return this.#filter(scale, scale.byOffset, this.byOffset, i);
  }

  /** Fills `byTop` likewise. */
  aroundByTop(i: number): number {
    const scale = this.#scales[this.#scaleOf[i] as number] as Scale;
    return this.#filter(scale, scale.byTop, this.byTop, i);
  }

  #filter(scale: Scale, from: Int32Array, to: Int32Array, i: number): number {
    const { lo, hi } = this.#spans;
    const start = lo[i] as number;
    const end = hi[i] as number;
    const w = scale.stride === 0 ? 0 : Math.floor(start / scale.stride);
    const base = scale.base[w] as number;
    const stop = base + (scale.count[w] as number);
    this.work += stop - base;
    let found = 0;
    for (let p = base; p < stop; p++) {
      const j = from[p] as number;
      to[found] = j;
      // one more if lo[j] < end and start < hi[j]: both differences have their sign bit set
      found += (((lo[j] as number) - end) & (start - (hi[j] as number))) >>> 31;
    }
    return found;
  }

  #first({ stride }: Scale, i: number): number {
    return stride === 0 ? 0 : Math.max(0, Math.floor((this.#spans.lo[i] as number) / stride) - 1);
  }

  #last({ stride }: Scale, i: number): number {
    return stride === 0 ? 0 : Math.floor(((this.#spans.hi[i] as number) - 1) / stride);
  }
}

/** Strides of all scales; 0 for the one window of everything. */
function stridesFor(n: number, count: number): number[] {
  const strides: number[] = [];
  const most = Math.min(FINEST, n / 48);
  for (let windows = COARSER; windows <= most; windows *= COARSER) {
    const stride = Math.ceil(count / windows);
    if (stride >= LEAST_STRIDE) strides.push(stride);
  }
  return [0, ...strides];
}

function scaleOf({ n, count, lo, hi }: Spans, stride: number, withTops: boolean): Scale {
  const windows = stride === 0 ? 1 : Math.floor((count - 1) / stride) + 1;
  const base = new Int32Array(windows + 1);
  for (let i = 0; i < n; i++) {
    const first = stride === 0 ? 0 : Math.max(0, Math.floor((lo[i] as number) / stride) - 1);
    const last = stride === 0 ? 0 : Math.floor(((hi[i] as number) - 1) / stride);
    for (let w = first; w <= last; w++) base[w + 1] = (base[w + 1] as number) + 1;
  }
  for (let w = 0; w < windows; w++) base[w + 1] = (base[w + 1] as number) + (base[w] as number);
  const total = base[windows] as number;
  return {
    stride,
    base,
    count: new Int32Array(windows),
    byOffset: new Int32Array(total),
    byTop: new Int32Array(withTops ? total : 0),
  };
}

/** Where item i is, or would go, in list[from, to), which is sorted by key and then by item. */
function positionIn(list: Int32Array, key: Float64Array, i: number, from: number, to: number): number {
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

function insert(list: Int32Array, key: Float64Array, i: number, from: number, to: number): void {
  const at = positionIn(list, key, i, from, to);
  list.copyWithin(at + 1, at, to);
  list[at] = i;
}

function remove(list: Int32Array, key: Float64Array, i: number, from: number, to: number): void {
  const at = positionIn(list, key, i, from, to);
  list.copyWithin(at, at + 1, to);
}
