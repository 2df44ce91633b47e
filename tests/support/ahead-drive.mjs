/**
 * @file Runs programs that were built ahead of time, in Node and in a page alike, with nothing but their files: loads each, makes its
 * calls and returns the bytes of results and state. Node runs it as a process (tests/ahead.test.ts).
 */
const ARRAYS = { f32: Float32Array, f64: Float64Array, i32: Int32Array, bool: Uint8Array };

/** Every other call is made with nested arrays. */
function argumentOf(given, isNested) {
  if (typeof given === "number") return given;
  const { dtype, shape, data } = given;
  if (!isNested) return new ARRAYS[dtype](data);
  let next = 0;
  const nested = (axis) =>
    axis === shape.length ? data[next++] : Array.from({ length: shape[axis] }, () => nested(axis + 1));
  return nested(0);
}

function leavesOf(tree) {
  if (tree === undefined) return [];
  return ArrayBuffer.isView(tree) ? [tree] : Object.values(tree).flatMap(leavesOf);
}

const text = ({ buffer, byteOffset, byteLength }) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer, byteOffset, byteLength)));

/** One program, from the folder at a URL. */
export async function drive(url, calls, hasState) {
  const { load } = await import(new URL("index.js", url).href);
  const program = await load();
  const results = calls.map((call, i) => {
    return leavesOf(program(...call.map((given) => argumentOf(given, i % 2 === 1)))).map(text);
  });
  const state = hasState ? program.resident.map(({ name }) => text(program.read(name))) : [];
  // a second program starts from the state that the first one saved
  const again = await load({ weights: program.resident.length > 0 ? program.save() : undefined });
  const resumed = hasState ? again.resident.map(({ name }) => text(again.read(name))) : [];
  return { results, state, resumed, arenaBytes: program.arenaBytes };
}

export async function driveAll(base, cases) {
  const outcomes = {};
  for (const { name, calls, hasState } of cases) {
    outcomes[name] = await drive(new URL(`${name}/`, base), calls, hasState);
  }
  return outcomes;
}

if (globalThis.process?.argv?.[2]) {
  const { readFileSync } = process.getBuiltinModule("node:fs");
  const { pathToFileURL } = process.getBuiltinModule("node:url");
  const [, , folder, cases] = process.argv;
  console.log(JSON.stringify(await driveAll(pathToFileURL(`${folder}/`), JSON.parse(readFileSync(cases, "utf8")))));
}
