/** @file The peak of a family of programs as a function of its named dimensions, as a table. */
import { formatBytes } from "../base/bytes.ts";
import { grouped } from "../base/errors.ts";
import type { Extents } from "./shape-axes.ts";
import type { ShapeFamilyInfo, ShapeMember } from "./shape-family.ts";

/** `T = 64, B = 8`; `T ≤ 64` where smaller ones are meant too. @internal */
export const extentsText = (extents: Extents, bounded?: ReadonlySet<string>): string =>
  Object.entries(extents)
    .map(([name, extent]) => `${name} ${bounded?.has(name) ? "≤" : "="} ${extent}`)
    .join(", ");

/** Bytes for each more of the one name in which two members differ; null where they differ in several. */
function slope(
  from: ShapeMember | undefined,
  to: ShapeMember,
): { readonly name: string; readonly bytes: number } | null {
  const names = Object.keys(to.extents).filter((name) => from && from.extents[name] !== to.extents[name]);
  const [name] = names;
  if (!from || name === undefined || names.length > 1) return null;
  const more = (to.extents[name] ?? 0) - (from.extents[name] ?? 0);
  return { name, bytes: Math.round((to.arenaBytes - from.arenaBytes) / more) };
}

/**
 * A line for each member: its arena, and how fast the arena grows from the member before. The peak between two members is about
 * on the line through both; at the members it is exact.
 * @internal
 */
export function familyText(
  { arenaBytes, members }: Pick<ShapeFamilyInfo, "arenaBytes" | "members">,
  bounded: ReadonlySet<string>,
): string {
  const rows = members.map((member, i) => {
    const growth = slope(members[i - 1], member);
    return [
      extentsText(member.extents, bounded),
      `${grouped(member.arenaBytes)} bytes`,
      `${grouped(member.arenaBytes - member.persistentBytes)} besides what persists`,
      growth ? `${grouped(growth.bytes)} for each more ${growth.name}` : "",
    ];
  });
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const lines = rows.map((row) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join("   ")
      .trimEnd(),
  );
  const kept = Math.max(...members.map((member) => member.persistentBytes));
  const total = `one arena of ${formatBytes(arenaBytes)} for all of them, of which ${formatBytes(kept)} persist between runs`;
  return `${lines.join("\n")}\n${total}\n`;
}
