/** @file Pictures made of characters: fields by shades, points and curves on a canvas. */

const SHADES = " .:-=+*#%@";

/** A field of rows of numbers as shades between two values; characters are tall, so each stands for two rows. */
export function shades(rows, [low, high]) {
  const shade = (value) => {
    const part = (value - low) / (high - low || 1);
    return SHADES[Math.min(SHADES.length - 1, Math.max(0, Math.floor(part * SHADES.length)))];
  };
  const pairs = Array.from({ length: Math.ceil(rows.length / 2) }, (_, i) => rows.slice(2 * i, 2 * i + 2));
  const mean = (pair, column) => pair.reduce((sum, row) => sum + row[column], 0) / pair.length;
  return pairs.map((pair) => pair[0].map((_, column) => shade(mean(pair, column))).join("")).join("\n");
}

/** Pictures side by side under their titles. */
export function beside(pictures) {
  const blocks = pictures.map(([title, text]) => [title, ...text.split("\n")]);
  const widths = blocks.map((lines) => Math.max(...lines.map((line) => line.length)));
  const height = Math.max(...blocks.map((lines) => lines.length));
  const line = (i) => blocks.map((lines, b) => (lines[i] ?? "").padEnd(widths[b])).join("   ");
  return Array.from({ length: height }, (_, i) => line(i).trimEnd()).join("\n");
}

/** Lists of [x, y] as marks in a frame; later lists lie over earlier ones. */
export function canvas(lists, { width = 64, height = 24, x: [x0, x1], y: [y0, y1] }) {
  const cells = Array.from({ length: height }, () => Array(width).fill(" "));
  for (const { mark, points } of lists) {
    for (const [x, y] of points) {
      const column = Math.round(((x - x0) / (x1 - x0)) * (width - 1));
      const row = Math.round(((y1 - y) / (y1 - y0)) * (height - 1));
      if (cells[row]?.[column] !== undefined) cells[row][column] = mark;
    }
  }
  const edge = `+${"-".repeat(width)}+`;
  return [edge, ...cells.map((row) => `|${row.join("")}|`), edge].join("\n");
}
