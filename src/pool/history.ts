/** @file The last allocations and frees of a pool, in typed arrays that are overwritten from the start when they are full. */

export interface PoolEvent {
  readonly isAllocation: boolean;
  readonly address: number;
  readonly bytes: number;
  readonly tag: number;
}

export interface PoolEvents {
  add(isAllocation: boolean, address: number, bytes: number, tag: number): void;
  /** The oldest first. */
  all(): readonly PoolEvent[];
}

export function recorder(most: number): PoolEvents {
  const addresses = new Float64Array(most);
  /** Negative ones are frees. */
  const sizes = new Float64Array(most);
  const tags = new Int32Array(most);
  let count = 0;
  return {
    add(isAllocation, address, bytes, tag) {
      const at = count % most;
      addresses[at] = address;
      sizes[at] = isAllocation ? bytes : -bytes;
      tags[at] = tag;
      count += 1;
    },
    all() {
      const length = Math.min(count, most);
      return Array.from({ length }, (_, i): PoolEvent => {
        const at = (count - length + i) % most;
        const bytes = sizes[at] as number;
        return {
          isAllocation: bytes > 0,
          address: addresses[at] as number,
          bytes: Math.abs(bytes),
          tag: tags[at] as number,
        };
      });
    },
  };
}
