/** @file Serves the playground's files, which are static. Others that lie in the same folder are not served. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { NOT_FOUND, type PageServer, servePages } from "./page-server.ts";

/** All files, with their types. */
const FILES: Readonly<Record<string, string>> = {
  "index.html": "text/html; charset=utf-8",
  "edit.html": "text/html; charset=utf-8",
  "worker.js": "text/javascript; charset=utf-8",
};

/** Browsers keep plans by the address of a page, so it should be the same the next time. */
const USUAL_PORT = 7743;

export const isPlayground = (folder: string): boolean =>
  Object.keys(FILES).every((name) => existsSync(join(folder, name)));

/** @param port null: the usual one, or one that is free */
export function servePlayground(folder: string, port: number | null): Promise<PageServer> {
  const files = new Map(Object.keys(FILES).map((name) => [`/${name}`, readFileSync(join(folder, name))]));
  return servePages("playground", port === null ? [USUAL_PORT, 0] : [port], ({ path }) => {
    const name = path === "/" ? "/index.html" : path;
    const body = files.get(name);
    return body ? { status: 200, type: FILES[name.slice(1)] ?? "", body } : NOT_FOUND;
  });
}
