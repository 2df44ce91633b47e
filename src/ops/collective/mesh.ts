/** @file Meshes as text, which is how attributes hold them: `data=2,tensor=4`, and `data=2 ordered` where sums have one order. */
import { TidemarkError } from "../../base/errors.ts";
import { Recent } from "../../base/recent.ts";
import type { DeviceGroup } from "../../kernel/device-group.ts";

/** Attributes that all collectives have. */
export type GroupAttrs = {
  readonly mesh: string;
  /** Names of axes, separated by commas. */
  readonly over: string;
};

export interface Mesh {
  readonly axes: readonly (readonly [name: string, extent: number])[];
  /** Sums are added up in the order of ranks, whatever the library does. */
  readonly ordered: boolean;
}

const ORDERED = " ordered";
const AXIS = /^[\p{L}_][\p{L}\p{N}_]*=[1-9][0-9]*$/u;

export function meshText({ axes, ordered }: Mesh): string {
  return axes.map(([name, extent]) => `${name}=${extent}`).join() + (ordered ? ORDERED : "");
}

const meshes = new Recent<string, Mesh>(16);

/** A mesh from its text; throws for text that is none. */
export const parseMesh = (text: string): Mesh => meshes.get(text, () => parsed(text));

function parsed(text: string): Mesh {
  const ordered = text.endsWith(ORDERED);
  const parts = (ordered ? text.slice(0, -ORDERED.length) : text).split(",");
  const names = parts.map((part) => part.split("=")[0] ?? "");
  if (!parts.every((part) => AXIS.test(part)) || new Set(names).size < names.length) {
    const help = 'axes have names and extents, mesh="data=2,tensor=4"';
    throw new TidemarkError("InvalidGraph", `a mesh is written ${JSON.stringify(text)}`, { help });
  }
  return { axes: parts.map((part, i) => [names[i] as string, Number(part.split("=")[1])]), ordered };
}

/** Axes of a mesh in its order, each once. */
export const inOrder = (mesh: string, over: Iterable<string>): readonly string[] => {
  const wanted = new Set(over);
  return parseMesh(mesh).axes.flatMap(([name]) => (wanted.has(name) ? [name] : []));
};

const groups = new Recent<string, DeviceGroup>(64);

/** The group of a collective; throws for axes that the mesh does not have. */
export function groupOf({ mesh, over }: GroupAttrs): DeviceGroup {
  return groups.get(`${mesh} ${over}`, () => {
    const { axes } = parseMesh(mesh);
    const names = over.split(",");
    const unknown = names.filter((name) => !axes.some(([axis]) => axis === name));
    if (unknown.length > 0) {
      const help = `its axes are ${axes.map(([name]) => name).join(", ")}`;
      throw new TidemarkError("InvalidGraph", `over=${over}: the mesh ${mesh} has no axis ${unknown.join(", ")}`, {
        help,
      });
    }
    return { mesh: axes, over: inOrder(mesh, names) };
  });
}
