/**
 * @file Publishes the tables of docs/speed.md: a benchmark prints its table, or writes it between the marks of its
 * block in the page, `<!-- NAME -->` and `<!-- end -->`, with the date and the machine above it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";

const PAGE = new URL("../docs/speed.md", import.meta.url);

/** One line on where and when; the load says how much else was running. */
export function circumstances() {
  const [cpu] = cpus();
  const load = loadavg()[0].toFixed(1);
  const date = new Date().toISOString().slice(0, 10);
  return `${date}, ${cpus().length} cores of ${cpu.model.trim()}, Node ${process.versions.node}, load ${load}`;
}

/** Prints a table, or writes it into its block of the page; `about` is where and when it was made. */
export function publish(block, text, write, about = circumstances()) {
  if (!write) {
    console.log(text);
    return;
  }
  const before = readFileSync(PAGE, "utf8");
  const marks = new RegExp(`(<!-- ${block} -->\n)[\\s\\S]*?(<!-- end -->)`);
  if (!marks.test(before)) throw new Error(`docs/speed.md has no block ${block}`);
  const filled = `${about}.\n\n${text.trim()}\n`;
  writeFileSync(
    PAGE,
    before.replace(marks, (_, start, end) => `${start}${filled}${end}`),
  );
}
