/**
 * @file Snapshots of a run on several devices, which is complete or not there:
 *
 *   rank 0   state-700.0-of-2.tide ─╮                ╭─ state-700.tide ─ older ones are removed
 *   rank 1   state-700.1-of-2.tide ─┴─ all durable ──╯
 *
 * Every rank writes its file (spread.ts) while steps go on. When all are durable, which ranks tell each other at a meeting, the first one
 * writes the record: the mesh, and the checksum of every file. Without a record the files are nothing, and are removed by the next run. A
 * file that another attempt has left or replaced has another checksum; so a step that was damaged is simply written again.
 */
import { join } from "node:path";
import { grouped, TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";
import type { TensorType } from "../../ir/type.ts";
import { meshSize } from "../../kernel/device-group.ts";
import type { StateTensor } from "../../parallel/state-layout.ts";
import { meshText } from "../../runtime/communicator.ts";
import { KEPT } from "../durable-points.ts";
import type { Files } from "../files.ts";
import { fingerprintOf, type Identity } from "../identity.ts";
import type { Layout } from "../layout.ts";
import { damaged, HEADER_BYTES, type Label, labelOf, partOf, storageError } from "../snapshot-file.ts";
import { namesIn, Store } from "../store.ts";
import type { Meeting } from "./meeting.ts";
import { fileLayout, isSpread, readRuns, type Spread, sourcesOf, writeRuns } from "./spread.ts";

export interface SnapshotsOptions {
  readonly files: Files;
  readonly folder: string;
  readonly identity: Identity;
  readonly meeting: Meeting;
  readonly spread: Spread;
  readonly tensors: readonly StateTensor[];
  readonly loss: TensorType;
}

/** What a record says. */
interface Snapshot {
  readonly step: number;
  readonly spread: Spread;
  /** Of the files, by rank. */
  readonly checksums: readonly string[];
}

/** A state to go on from: bytes of what the device keeps of each tensor, and of the loss. */
export interface Found {
  readonly step: number;
  readonly kept: readonly Uint8Array[];
  /** The mesh that wrote it. */
  readonly spread: Spread;
}

/** What the first rank decides at a meeting. */
export interface Decision {
  readonly save: boolean;
  /** The step after which to meet again. */
  readonly next: number;
}

/** What a rank says at a meeting. */
interface Said {
  /** Of its file, where that is durable. */
  readonly checksum: string | null;
  readonly decision: Decision | null;
}

/** A record has about seventy bytes for each rank. */
const LONGEST_RECORD = 2 ** 26;
const AFTER_FAILURE = "then train again: it continues from the last snapshot";
const labelAt = (step: number): Label => ({ kind: "state", step });

export class Snapshots {
  readonly #o: SnapshotsOptions;
  readonly #store: Store;
  readonly #layout: Layout;
  /** On the first rank: steps of records that are there, oldest first. */
  #recorded: number[] = [];
  /** The file that is being written, or has no record yet. */
  #pending: { readonly step: number; readonly checksum: string } | null = null;
  #recording: Promise<void> = Promise.resolve();
  #failure: unknown = null;

  constructor(options: SnapshotsOptions) {
    this.#o = options;
    const { tensors, spread, loss, meeting } = options;
    this.#layout = fileLayout(tensors, spread, loss);
    this.#store = this.#storeOf(spread, meeting.rank, this.#layout);
  }

  get busy(): boolean {
    return this.#store.busy;
  }

  /** Of this rank's last file. */
  get writeMs(): number {
    return this.#store.writeMs;
  }

  #storeOf(spread: Spread, rank: number, { bytes }: Layout, buffers = 1): Store {
    const { files, folder, identity } = this.#o;
    return new Store(files, {
      folder,
      // a file of another rank or mesh is none of this one
      fingerprint: fingerprintOf({ ...identity, mesh: meshText(spread), over: spread.over.join(), rank }),
      sizes: { state: bytes, adjoint: 0 },
      afterFailure: AFTER_FAILURE,
      part: { number: rank, of: meshSize(spread) },
      buffers,
    });
  }

  #recordStore(bytes: number): Store {
    const { files, folder, identity } = this.#o;
    const sizes = { state: bytes, adjoint: 0 };
    return new Store(files, {
      folder,
      fingerprint: fingerprintOf(identity),
      sizes,
      afterFailure: AFTER_FAILURE,
      buffers: 1,
    });
  }

  /**
   * The last snapshot at or before `steps` of which every rank can read what it keeps, into `kept`; null where there is none at all.
   * Throws where there are some and none can be read.
   */
  async find(steps: number, kept: readonly Uint8Array[], damaged: string[]): Promise<Found | null> {
    const { meeting } = this.#o;
    const listed = await meeting.fromFirst(async () => JSON.stringify(await this.#list(damaged)));
    const { snapshots, problems } = JSON.parse(listed) as { snapshots: readonly Snapshot[]; problems: string[] };
    if (meeting.rank > 0) damaged.push(...problems);
    for (const snapshot of snapshots.filter(({ step }) => step <= steps).reverse()) {
      const said = await meeting.all(() => this.#problemOf(snapshot, kept));
      const found = new Set(said.filter((problem) => problem !== ""));
      if (found.size === 0) return { step: snapshot.step, kept, spread: snapshot.spread };
      damaged.push(...found);
    }
    if (damaged.length === 0 || (snapshots.length > 0 && snapshots.every(({ step }) => step > steps))) return null;
    await meeting.all(() => {
      throw new TidemarkError("StorageError", damaged[0] ?? "", {
        help: "no snapshot is intact: remove the folder to begin again, or bring its files back",
      });
    });
    return null;
  }

  /** On the first rank: the snapshots, oldest first. What has no record is removed. */
  async #list(problems: string[]): Promise<{ snapshots: readonly Snapshot[]; problems: readonly string[] }> {
    const { files, folder } = this.#o;
    const names = await namesIn(files, folder).catch((error: unknown) => {
      throw storageError("read", folder, error, AFTER_FAILURE);
    });
    const steps = names.flatMap((name) => labelOf(name)?.step ?? []).sort((a, b) => a - b);
    for (const name of names) {
      const part = partOf(name);
      if (part && !steps.includes(part.step)) await files.remove(join(folder, name));
    }
    this.#recorded.push(...steps);
    const snapshots: Snapshot[] = [];
    for (const step of steps) {
      const snapshot = await this.#record(step).catch((error: unknown) => {
        if (!(error instanceof TidemarkError)) throw error;
        problems.push(error.summary);
      });
      if (snapshot) snapshots.push(snapshot);
    }
    return { snapshots, problems };
  }

  async #record(step: number): Promise<Snapshot> {
    const path = this.#recordStore(0).pathOf(labelAt(step));
    const size = await this.#o.files.sizeOf(path).catch((error: unknown) => {
      throw storageError("read", path, error, AFTER_FAILURE);
    });
    if (size < HEADER_BYTES) throw damaged(path, "it is cut short");
    if (size > LONGEST_RECORD) throw damaged(path, `it has ${grouped(size)} bytes, more than any record`);
    let text = "";
    await this.#recordStore(size - HEADER_BYTES).get(labelAt(step), (block) => {
      text = new TextDecoder().decode(block);
    });
    const { spread, checksums } = JSON.parse(text) as Partial<Snapshot>;
    if (isSpread(spread) && Array.isArray(checksums)) return { step, spread, checksums };
    throw damaged(path, "it is no record of a snapshot");
  }

  /** Reads what this rank keeps; why that cannot be done, or nothing. */
  async #problemOf(snapshot: Snapshot, kept: readonly Uint8Array[]): Promise<string> {
    const { spread, checksums, step } = snapshot;
    const { tensors, loss, meeting } = this.#o;
    const layout = fileLayout(tensors, spread, loss);
    const into = { spread: this.#o.spread, rank: meeting.rank, kept };
    try {
      for (const file of sourcesOf(tensors, spread, into)) {
        const store = this.#storeOf(spread, file.rank, layout);
        await store.get(labelAt(step), (block, checksum) => {
          if (checksum !== checksums[file.rank]) {
            throw damaged(store.pathOf(labelAt(step)), "it is not the file that its snapshot was completed with");
          }
          readRuns(tensors, { file, written: spread, layout }, into, block);
        });
      }
      return "";
    } catch (error) {
      if (error instanceof TidemarkError) return error.summary;
      throw error;
    }
  }

  /**
   * All ranks meet after a step: errors of writes reach all, a snapshot whose files are durable is completed, and the first rank decides whether
   * another one begins. `kept`: what the device has of each tensor, and the loss. The step after which to meet again.
   */
  async meet(step: number, decide: () => Decision, kept: () => Promise<readonly Uint8Array[]>): Promise<number> {
    const { meeting } = this.#o;
    const texts = await meeting.all(() => {
      this.#check();
      const isDurable = this.#pending !== null && !this.#store.busy;
      const checksum = isDurable ? (this.#pending?.checksum ?? null) : null;
      return JSON.stringify({ checksum, decision: meeting.rank === 0 ? decide() : null } satisfies Said);
    });
    const said = texts.map((text) => JSON.parse(text) as Said);
    this.#complete(said.map(({ checksum }) => checksum));
    const { save, next } = at(said, 0).decision as Decision;
    if (save) await this.#begin(step, kept);
    return next;
  }

  /** Waits until everything is durable, on all ranks. */
  async finish(): Promise<void> {
    await this.#settle();
    await this.#o.meeting.fromFirst(async () => {
      await this.#recording;
      this.#check();
      return "";
    });
  }

  /** Waits until nothing is being written, whether that succeeded or not. */
  async rest(): Promise<string> {
    await this.#store.settled().catch(() => undefined);
    await this.#recording;
    return "";
  }

  #check(): void {
    this.#store.check();
    if (this.#failure !== null) throw this.#failure;
  }

  /** Waits for the files of all ranks. */
  async #settle(): Promise<void> {
    if (this.#pending === null) return;
    const { checksum } = this.#pending;
    this.#complete(
      await this.#o.meeting.all(async () => {
        await this.#store.settled();
        return checksum;
      }),
    );
  }

  async #begin(step: number, kept: () => Promise<readonly Uint8Array[]>): Promise<void> {
    const { meeting, tensors, spread } = this.#o;
    await this.#settle();
    // one record is written at a time, so that a slow disk is waited for
    await this.#recording;
    const state = await kept();
    const place = { spread, rank: meeting.rank, layout: this.#layout };
    const checksum = await this.#store.put(labelAt(step), (block) => writeRuns(tensors, place, state, block));
    this.#pending = { step, checksum };
  }

  /** With the checksums of all files: the first rank writes the record. */
  #complete(checksums: readonly (string | null)[]): void {
    if (this.#pending === null || checksums.includes(null)) return;
    const { step } = this.#pending;
    this.#pending = null;
    if (this.#o.meeting.rank > 0) return;
    this.#recording = this.#write({ step, spread: this.#o.spread, checksums: checksums as string[] }).catch(
      (error: unknown) => {
        this.#failure ??= storageError("write", this.#o.folder, error, AFTER_FAILURE);
      },
    );
  }

  async #write({ step, spread, checksums }: Snapshot): Promise<void> {
    const text = new TextEncoder().encode(JSON.stringify({ spread, checksums }));
    const store = this.#recordStore(text.length);
    await store.put(labelAt(step), (block) => block.set(text));
    await store.settled();
    // in the place of a damaged one, whose files have been written again
    this.#keepRecorded((each) => each !== step);
    this.#recorded.push(step);
    while (this.#recorded.length > KEPT) await this.#remove(at(this.#recorded, 0));
  }

  /** Removes a snapshot, the record first. */
  async #remove(step: number): Promise<void> {
    const { files, folder } = this.#o;
    await this.#recordStore(0).remove(labelAt(step));
    await files.syncFolder(folder);
    const names = await files.list(folder);
    for (const name of names) if (partOf(name)?.step === step) await files.remove(join(folder, name));
    this.#keepRecorded((each) => each !== step);
  }

  #keepRecorded(isKept: (step: number) => boolean): void {
    this.#recorded = this.#recorded.filter(isKept);
  }
}
