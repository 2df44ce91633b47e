/** @file The playground's files from this machine's server: these alone, and with the headers that shared memory needs. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { isPlayground, servePlayground } from "./playground-server.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-files-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("serves its three files and nothing beside them", async () => {
  expect(isPlayground(folder)).toBe(false);
  for (const name of ["index.html", "edit.html", "worker.js", "other.txt"]) writeFileSync(join(folder, name), name);
  expect(isPlayground(folder)).toBe(true);
  const server = await servePlayground(folder, 0);
  const page = await fetch(server.url);
  expect(await page.text()).toBe("index.html");
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(page.headers.get("cross-origin-opener-policy")).toBe("same-origin");
  expect(page.headers.get("cross-origin-embedder-policy")).toBe("require-corp");
  const worker = await fetch(`${server.url}worker.js?x=1`);
  expect(worker.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  for (const name of ["other.txt", "edit", "worker.js/", "%2e%2e/package.json"]) {
    expect((await fetch(`${server.url}${name}`)).status, name).toBe(404);
  }
  expect((await fetch(server.url, { method: "POST" })).status).toBe(405);
  server.close();
  await server.closed;
});

it("has a usual port, and another where that is taken; a port that is given must be free", async () => {
  const [first, second] = [await servePlayground(folder, null), await servePlayground(folder, null)];
  expect(first.url).not.toBe(second.url);
  const taken = Number(new URL(second.url).port);
  await expect(servePlayground(folder, taken)).rejects.toThrow(`playground: port ${taken}: EADDRINUSE`);
  for (const server of [first, second]) server.close();
});
