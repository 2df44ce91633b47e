/** @file File systems that fail: one that fills up, and one that stops in the middle of whatever it is doing. */
import { type Files, NODE_FILES } from "../../src/node/files.ts";

const coded = (code: string): Error => Object.assign(new Error(`${code}: as asked`), { code });

/** Takes `room` bytes in all, counting what was removed as free again; then there is no space left. */
export function fullAfter(room: number): Files {
  const sizes = new Map<string, number>();
  const used = (): number => [...sizes.values()].reduce((sum, size) => sum + size, 0);
  return {
    ...NODE_FILES,
    async write(path, contents) {
      const free = Math.max(0, room - used());
      // as a real disk does, it takes what it can
      await NODE_FILES.write(path, contents.subarray(0, Math.min(free, contents.length)));
      sizes.set(path, Math.min(free, contents.length));
      if (contents.length > free) throw coded("ENOSPC");
    },
    async rename(from, to) {
      await NODE_FILES.rename(from, to);
      sizes.set(to, sizes.get(from) ?? 0);
      sizes.delete(from);
    },
    async remove(path) {
      await NODE_FILES.remove(path);
      sizes.delete(path);
    },
  };
}

/** Thrown by everything after the crash, like a process that is not there any more. */
export class Crash extends Error {}

/**
 * Works for `operations` calls that change the disk; the one after that is done by half (a write leaves a part of its
 * bytes, anything else happens or not by turns), and from then on nothing works.
 */
export function crashAfter(operations: number): { readonly files: Files; crashed(): boolean } {
  let count = 0;
  const change = async (act: () => Promise<void>, half: () => Promise<void>): Promise<void> => {
    count++;
    if (count > operations + 1) throw new Crash();
    if (count <= operations) return act();
    await half();
    throw new Crash();
  };
  const maybe = (act: () => Promise<void>): Promise<void> => (operations % 2 === 0 ? act() : Promise.resolve());
  const whole = (act: () => Promise<void>): Promise<void> => change(act, () => maybe(act));
  const files: Files = {
    ...NODE_FILES,
    makeFolder: (path) => whole(() => NODE_FILES.makeFolder(path)),
    write: (path, contents) =>
      change(
        () => NODE_FILES.write(path, contents),
        () => NODE_FILES.write(path, contents.subarray(0, contents.length >> 1)),
      ),
    rename: (from, to) => whole(() => NODE_FILES.rename(from, to)),
    syncFolder: (path) => whole(() => NODE_FILES.syncFolder(path)),
    remove: (path) => whole(() => NODE_FILES.remove(path)),
  };
  return { files, crashed: () => count > operations };
}
