/** @file The folder of a run on several devices: whose it is, and whether all ranks see it. */
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { TidemarkError } from "../../base/errors.ts";
import { meshText } from "../../runtime/communicator.ts";
import type { Files } from "../files.ts";
import { LOCK, lockText } from "../folder-lock.ts";
import { type Identity, manifestIn, requireSame, writeManifest } from "../identity.ts";
import { fileName, storageError } from "../snapshot-file.ts";
import type { Meeting } from "./meeting.ts";
import { extentsText, type Spread } from "./spread.ts";

/** A run that asks for a folder. */
export interface Claim {
  /** What is the same on any number of devices. */
  readonly identity: Identity;
  /** The devices and what each keeps, and what of the run depends on that. */
  readonly form: string;
  readonly steps: Identity;
  readonly spread: Spread;
  /** Axes along which devices have parameters of their own. */
  readonly own: readonly string[];
}

/** What the manifest says of devices. */
interface DevicesPart {
  readonly mesh: string;
  /** Extents of axes along which devices have parameters of their own. */
  readonly own: string;
  readonly forms: Readonly<Record<string, Identity>>;
}

function requireOwnAxes(folder: string, there: DevicesPart, here: DevicesPart): void {
  if (there.own === here.own) return;
  const said = ({ mesh, own }: DevicesPart): string =>
    `${mesh}, ${own === "" ? "where all devices have the same parameters" : `with parameters in parts along ${own}`}`;
  const summary = `${folder} was trained on the mesh ${said(there)}; this one is ${said(here)}`;
  const help = `along such axes a run goes on with the same extents${there.own === "" ? ", none here" : `, ${there.own}`}; along others, and with another \`zero\`, with any`;
  throw new TidemarkError("StorageError", summary, { help });
}

/** On the first rank: claims a folder for a run, which may have begun there on other devices. */
export async function claimShared(files: Files, folder: string, claim: Claim): Promise<void> {
  const { identity, form, steps, spread, own } = claim;
  const here: DevicesPart = { mesh: meshText(spread), own: extentsText(spread, own), forms: { [form]: steps } };
  const manifest = await manifestIn(files, folder);
  const there = (manifest?.devices ?? null) as DevicesPart | null;
  if (manifest) {
    if (there) requireOwnAxes(folder, there, here);
    const known = there?.forms?.[form];
    requireSame(folder, { ...manifest.run, ...known }, { ...identity, ...(known && steps) });
    if (known) return;
  }
  await writeManifest(files, folder, {
    run: identity,
    devices: { ...here, forms: { ...there?.forms, ...here.forms } },
  });
}

/** Network file systems may show what another machine wrote a little later. */
const LOOKS = 10;
const LOOK_MS = 100;

/** On every rank: its folder is that of the first rank, whose lock has this text, and can be written. */
export async function requireShared(files: Files, directory: string, text: string, meeting: Meeting): Promise<string> {
  const folder = resolve(directory);
  const { rank, size } = meeting;
  for (let looks = 1; (await lockText(files, join(folder, LOCK))) !== text; looks++) {
    if (looks < LOOKS) {
      await sleep(LOOK_MS);
      continue;
    }
    const summary = `train: ${folder} on ${hostname()}, the folder of rank ${rank}, is not the folder of rank 0`;
    throw new TidemarkError("StorageError", summary, {
      help: "give all ranks one folder, on a disk that all their machines share",
    });
  }
  const trial = join(folder, `${fileName({ kind: "state", step: 0 }, { number: rank, of: size })}.${process.pid}.tmp`);
  try {
    await files.write(trial, new Uint8Array(1));
    await files.remove(trial);
  } catch (error) {
    throw storageError("write", trial, error, "then train again");
  }
  return "";
}
