/** @file A least-recently-used map. */

export class Recent<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #limit: number;
  readonly #dropped: (value: V) => void;
  /** The entry used last, so that using it again moves nothing. */
  #latest: { readonly key: K; readonly value: V } | null = null;

  /** @param dropped is called with each evicted value */
  constructor(limit: number, dropped: (value: V) => void = () => undefined) {
    this.#limit = limit;
    this.#dropped = dropped;
  }

  get size(): number {
    return this.#entries.size;
  }

  values(): Iterable<V> {
    return this.#entries.values();
  }

  /** Those used longest ago first. */
  entries(): Iterable<readonly [K, V]> {
    return this.#entries.entries();
  }

  get(key: K, make: () => V): V {
    return this.find(key) ?? this.add(key, make());
  }

  find(key: K): V | undefined {
    if (this.#latest?.key === key) return this.#latest.value;
    const value = this.#entries.get(key);
    return value === undefined ? undefined : this.add(key, value);
  }

  /** Without using it. */
  peek(key: K): V | undefined {
    return this.#entries.get(key);
  }

  /** Another value for a key that is there, which is not used by that. */
  replace(key: K, value: V): void {
    this.#entries.set(key, value);
    if (this.#latest?.key === key) this.#latest = { key, value };
  }

  add(key: K, value: V): V {
    // Map keeps insertion order: the first entry is the one longest unused
    this.#entries.delete(key);
    this.#entries.set(key, value);
    this.#latest = { key, value };
    if (this.#entries.size > this.#limit) this.dropOldest();
    return value;
  }

  /** Forgets an entry without dropping its value. */
  delete(key: K): void {
    this.#entries.delete(key);
    if (this.#latest?.key === key) this.#latest = null;
  }

  /** False if the map is empty. */
  dropOldest(): boolean {
    for (const [key, value] of this.#entries) {
      this.delete(key);
      this.#dropped(value);
      return true;
    }
    return false;
  }
}
