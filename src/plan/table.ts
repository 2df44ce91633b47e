/** @file Text tables with aligned columns, and lists cut to a length. */

/** Rows of cells as lines; columns two spaces apart. */
export function table(rows: readonly (readonly string[])[], align: readonly ("left" | "right")[]): string[] {
  const widths = align.map((_, c) => rows.reduce((width, row) => Math.max(width, row[c]?.length ?? 0), 0));
  return rows.map((row) =>
    row
      .map((cell, c) => (align[c] === "right" ? cell.padStart(widths[c] ?? 0) : cell.padEnd(widths[c] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
}

/** `a, b, c and 5 more`. */
export function listed(items: readonly string[], most: number): string {
  if (items.length <= most) return items.join(", ");
  return `${items.slice(0, most).join(", ")} and ${items.length - most} more`;
}
