/**
 * @file The least time of a training step of a chain, where values may be kept, recomputed, or moved to a slower memory and back:
 * an exact dynamic program, after POFO (Beaumont, Eyraud-Dubois, Shilova, NeurIPS 2021), for stages that are all alike.
 *
 * The forward pass is cut into segments. The value at the start of a segment is kept or moved; those inside it are dropped, and
 * recomputed when the backward pass comes to the segment. Copies out leave in the order in which values are made, copies in arrive in
 * the order in which they are used, one at a time each way:
 *
 *     forward    │ segment │ segment │ …          read from left to right: copies out are behind by `out`
 *     backward   │ segment │ segment │ …          read from right to left, in reversed time: copies in are behind by `back`
 *
 * A value that is on its way out is still in memory; so is one on its way in. Reversed in time the backward pass is like the forward
 * pass, which makes one recursion of both: a state is the first stage that is left, the values kept so far, and the time by which each
 * link is behind. Where memory is full, the program waits for the link. Times are whole numbers.
 */

export interface OffloadChain {
  readonly stages: number;
  /** Values that fit, beside what a stage computes with. */
  readonly slots: number;
  readonly forward: number;
  readonly backward: number;
  /** Of a copy, either way. */
  readonly copy: number;
  /** Stages of the longest segment. */
  readonly longest?: number;
}

/** Forward, backward, recomputation and waiting. */
export function leastOffloadTime({ stages, slots, forward, backward, copy, longest = 6 }: OffloadChain): number {
  const most = slots * copy;
  const side = most + 1;
  const stateOf = (kept: number, out: number, back: number): number => (kept * side + out) * side + back;
  const layers = Array.from({ length: stages + 1 }, () => new Map<number, number>([]));
  layers[0]!.set(stateOf(0, 0, 0), 0);
  const held = (behind: number): number => Math.ceil(behind / copy);
  for (let stage = 0; stage < stages; stage++) {
    for (const [state, time] of layers[stage]!) {
      const back = state % side;
      const out = Math.floor(state / side) % side;
      const kept = Math.floor(state / side / side);
      for (let length = 1; length <= Math.min(longest, stages - stage); length++) {
        const inside = length - 1;
        for (const isMoved of [false, true]) {
          const here = kept + (isMoved ? 0 : 1);
          // forward: a value that is moved is behind the others; waits until what is held fits
          const leaving = out + (isMoved ? copy : 0);
          const waitOut = Math.max(0, leaving - Math.max(0, slots - here) * copy);
          const nextOut = Math.max(0, leaving - waitOut - length * forward);
          // backward, reversed: what is recomputed is held together with what is on its way in
          const room = slots - here - inside - (isMoved ? 1 : 0);
          if (room < 0 || here > slots) continue;
          const waitBack = Math.max(0, back - room * copy);
          const spent = length * backward + inside * forward;
          const nextBack = Math.max(0, back - waitBack - spent) + (isMoved ? copy : 0);
          if (held(nextBack) + here > slots) continue;
          const next = stateOf(here, nextOut, nextBack);
          const total = time + length * forward + waitOut + spent + waitBack;
          const layer = layers[stage + length]!;
          if (total < (layer.get(next) ?? Number.POSITIVE_INFINITY)) layer.set(next, total);
        }
      }
    }
    layers[stage]!.clear();
  }
  return Math.min(...layers[stages]!.values());
}

/**
 * No schedule at all takes less: when the backward pass begins, at most `slots` values are in memory and what the link took is in the
 * other; the rest is computed again.
 */
export function offloadTimeBound({ stages, slots, forward, backward, copy }: OffloadChain): number {
  const after = (begin: number): number => {
    const missing = Math.max(0, stages - slots - Math.floor(begin / copy));
    return begin + stages * backward + missing * forward;
  };
  const begins = Array.from({ length: stages * copy + 1 }, (_, i) => stages * forward + i);
  return Math.min(...begins.map(after));
}
