/**
 * @file Large programs, compiled by several compilers at once, function by function of the cache:
 *
 *   CACHE/native/KEY.in      the name of an object that has the function of that key
 *   CACHE/native/NAME.o      an object of one or more functions
 *
 * Both are sealed like programs. Only functions that are in no object are compiled, so a changed program takes the time of what
 * changed. Whatever goes wrong here, the program can still be compiled as a whole (library.ts).
 */
import { rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { temporaryName } from "../cache-files.ts";
import type { SealedFolder } from "../sealed-folder.ts";
import { buildLinked, buildLinkedLater, type Compiler, canBuildLinked, digest, type LinkedBuild } from "./compiler.ts";
import { type LinkedFunction, LinkedProgram, lanesOf, type Unit } from "./units.ts";

/** Bytes of functions; smaller programs are compiled as a whole in the time of starting two compilers. */
const LEAST_TEXT = 20_000;
/** Compilers at once, each of which takes some hundred megabytes. */
const MOST_COMPILERS = 16;

/** Where the cache has a function; null if nowhere. */
function objectOf(folder: SealedFolder, { key }: LinkedFunction, valid: Map<string, boolean>): string | null {
  const name = folder.read(`${key}.in`)?.toString("utf8");
  if (name === undefined || !/^[0-9a-f]+\.o$/.test(name)) return null;
  const known = valid.get(name) ?? folder.read(name) !== null;
  valid.set(name, known);
  return known ? name : null;
}

interface NewUnit extends Unit {
  readonly source: string;
  readonly object: string;
}

/** One program on its way into a folder. */
class Construction {
  readonly #folder: SealedFolder;
  readonly #program: LinkedProgram;
  readonly #objects = new Set<string>();
  readonly #lanes: readonly (readonly NewUnit[])[];
  readonly #main: { readonly level: "rare"; readonly source: string; readonly object: string };

  constructor(folder: SealedFolder, program: LinkedProgram) {
    this.#folder = folder;
    this.#program = program;
    const valid = new Map<string, boolean>();
    const missing: LinkedFunction[] = [];
    for (const fn of program.functions) {
      const name = objectOf(folder, fn, valid);
      if (name === null) missing.push(fn);
      else this.#objects.add(folder.pathOf(name));
    }
    const aside = (): { source: string; object: string } => ({
      source: temporaryName(folder.pathOf("source")),
      object: temporaryName(folder.pathOf("object")),
    });
    const lanes = missing.length === 0 ? [] : lanesOf(missing, Math.min(availableParallelism(), MOST_COMPILERS));
    this.#lanes = lanes.map((units) => units.map((unit) => ({ ...unit, ...aside() })));
    this.#main = { level: "rare", ...aside() };
  }

  get #units(): readonly NewUnit[] {
    return this.#lanes.flat();
  }

  /** Writes the texts; what is to be done with them. */
  begin(path: string): LinkedBuild {
    for (const unit of this.#units)
      writeFileSync(unit.source, this.#program.unitText(unit), { mode: 0o600, flag: "wx" });
    writeFileSync(this.#main.source, this.#program.programText, { mode: 0o600, flag: "wx" });
    const objects = [this.#main, ...this.#units].map(({ object }) => object);
    // The calls take little time: at the end of the last list, which has no rare functions where there are several.
    const last = Math.max(0, this.#lanes.length - 1);
    const lanes = this.#lanes.length === 0 ? [[]] : this.#lanes;
    const withMain = lanes.map((units, i) => (i === last ? [...units, this.#main] : units));
    return { lanes: withMain, objects: [...objects, ...this.#objects], path };
  }

  /** Keeps the new functions for other programs. */
  keep(adopt: (name: string, aside: string) => void): void {
    for (const { functions, object } of this.#units) {
      const name = `${digest(...functions.map(({ key }) => key))}.o`;
      adopt(name, object);
      for (const { key } of functions) this.#folder.write(`${key}.in`, Buffer.from(name));
    }
  }

  end(): void {
    for (const { source, object } of [this.#main, ...this.#units]) {
      rmSync(source, { force: true });
      rmSync(object, { force: true });
    }
  }
}

interface LinkedRequest {
  readonly folder: SealedFolder;
  readonly compiler: Compiler;
  readonly text: string;
  /** Where the shared object goes. */
  readonly path: string;
  /** Seals a file that was compiled aside, and gives it its name in the folder. */
  readonly adopt: (name: string, aside: string) => void;
}

function constructionOf({ folder, compiler, text }: LinkedRequest): Construction | null {
  if (!canBuildLinked()) return null;
  const program = new LinkedProgram(text, compiler.identity);
  const weight = program.functions.reduce((sum, fn) => sum + fn.weight, 0);
  return weight < LEAST_TEXT ? null : new Construction(folder, program);
}

/** Compiles a program's functions side by side and links them; false if the program has to be compiled as a whole. */
export function compileLinked(request: LinkedRequest): boolean {
  const construction = constructionOf(request);
  if (!construction) return false;
  try {
    if (!buildLinked(request.compiler, construction.begin(request.path))) return false;
    construction.keep(request.adopt);
    return true;
  } finally {
    construction.end();
  }
}

/** The same while this thread goes on. */
export async function compileLinkedLater(request: LinkedRequest): Promise<boolean> {
  const construction = constructionOf(request);
  if (!construction) return false;
  try {
    if (!(await buildLinkedLater(request.compiler, construction.begin(request.path)))) return false;
    construction.keep(request.adopt);
    return true;
  } finally {
    construction.end();
  }
}
