/**
 * @file Reads a file by its extension: a plan (`.json`), a snapshot of PyTorch's allocator (`.pickle`), or a placed
 * table in MiniMalloc's format (`.csv`). Used by the command line and the page.
 */
import { TidemarkError } from "../base/errors.ts";
import { gunzip } from "../formats/gzip.ts";
import { boundOf } from "../plan/bound.ts";
import { parseCsv } from "../plan/csv.ts";
import { heightOf } from "../plan/problem.ts";
import { readPlanJson } from "../plan/read-json.ts";
import type { ViewEntry } from "./data.ts";
import { pictureOfPlan } from "./from-plan.ts";
import { utf8 } from "./pickle.ts";
import { type Picture, VIEW_KINDS } from "./picture.ts";
import { readSnapshot } from "./snapshot.ts";
import { placedByPlanner } from "./snapshot-place.ts";

export const FILE_KINDS: readonly string[] = [".json", ".pickle", ".pkl", ".csv", ".pickle.gz", ".pkl.gz"];

/** What a compressed snapshot may become. */
const MOST_UNPACKED = 2 ** 30;

const extension = (name: string): string => /\.[^./\\]*(\.gz)?$/.exec(name.toLowerCase())?.[0] ?? "";

/** Whether a name has one of the extensions. */
export const isViewFile = (name: string): boolean => FILE_KINDS.includes(extension(name));

/** The entries of a file, at least one. */
export function entriesOfFile(name: string, bytes: Uint8Array): readonly ViewEntry[] {
  const label = name.replace(/^.*[\\/]/, "");
  const entry = (picture: Picture, more = ""): ViewEntry => ({
    ...{ label: `${label}${more}`, budgetBytes: picture.budgetBytes, predictedMs: null, picture, asks: null },
  });
  switch (extension(name)) {
    case ".json":
      return [entry(pictureOfPlan(readPlanJson(utf8(bytes))))];
    case ".csv":
      return [entry(pictureOfTable(utf8(bytes), label))];
    case ".pickle":
    case ".pkl":
      return snapshotEntries(bytes, label, entry);
    case ".pickle.gz":
    case ".pkl.gz":
      return snapshotEntries(gunzip(bytes, MOST_UNPACKED), label, entry);
    default:
      throw new TidemarkError("InvalidArgument", `${label}: not a kind of file that can be shown`, {
        help: `these can: ${FILE_KINDS.join(", ")}`,
      });
  }
}

type MakeEntry = (picture: Picture, more?: string) => ViewEntry;

/** Each device as it was recorded, then with the same lifetimes placed here. */
function snapshotEntries(bytes: Uint8Array, label: string, entry: MakeEntry): readonly ViewEntry[] {
  const pictures = readSnapshot(bytes, label);
  return pictures.flatMap((picture) => {
    const device = pictures.length > 1 ? picture.name.slice(label.length) : "";
    const placed = placedByPlanner(picture, `${picture.name}, placed by Tidemark`);
    return [entry(picture, device), ...(placed ? [entry(placed, `${device}, placed by Tidemark`)] : [])];
  });
}

/** Only buffers with offsets: there are no steps to name. */
function pictureOfTable(text: string, name: string): Picture {
  const { problem, names, offsets } = parseCsv(text);
  if (!offsets) {
    throw new TidemarkError("ParseError", `csv: ${name} has no column offset`, {
      help: "tidemark pack places buffers; --output writes them with their offsets",
    });
  }
  const { buffers } = problem;
  const columns = buffers.reduce((last, { lifespan }) => Math.max(last, lifespan.end), 1);
  if (columns > 1e7) {
    throw new TidemarkError("ParseError", `csv: ${name} has ${columns} moments`, {
      help: "at most 10,000,000 are drawn",
    });
  }
  const bound = boundOf(problem);
  return {
    ...{ name, source: "snapshot", columns, budgetBytes: null, alignment: 1, strategy: "given" },
    heightBytes: heightOf(problem, offsets),
    boundBytes: bound.bytes,
    boundStep: bound.step,
    rects: {
      start: buffers.map((b) => b.lifespan.start),
      end: buffers.map((b) => b.lifespan.end),
      from: offsets,
      bytes: buffers.map((b) => b.bytes),
      kind: buffers.map(() => VIEW_KINDS.indexOf("allocation")),
    },
    values: buffers.map((b, v) => ({
      ...{ name: names[v] ?? `${v}`, type: `${b.bytes} bytes`, rect: v, over: null, written: null, story: [] },
    })),
    steps: [],
  };
}
