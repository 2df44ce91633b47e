/** @file Opening a browser: by which command, and what is said where that is not possible. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, afterEach, expect, it, vi } from "vitest";
import { openInBrowser, openingOf } from "./open.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-open-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => {
  vi.unstubAllEnvs();
});

const address = "file:///plan.html#v1&budget=1";

it("takes the command of the system, and none on a build machine or without a display", () => {
  expect(openingOf(address, "darwin", {})).toEqual({ command: "open", args: [address] });
  expect(openingOf(address, "linux", { DISPLAY: ":0" })).toEqual({ command: "xdg-open", args: [address] });
  expect(openingOf("a&b", "win32", {})).toEqual({ command: "cmd", args: ["/c", "start", '""', "a^&b"] });
  expect(openingOf(address, "linux", {})).toEqual({ problem: expect.stringContaining("no display") });
  for (const platform of ["darwin", "linux", "win32"] as const)
    expect(openingOf(address, platform, { CI: "true", DISPLAY: ":0" })).toEqual({ problem: expect.any(String) });
});

it.runIf(process.platform === "linux")("runs the command, or says loudly that there is none", async () => {
  const said: string[] = [];
  const io = { out: () => undefined, err: (text: string) => said.push(text) };
  vi.stubEnv("CI", "");
  vi.stubEnv("DISPLAY", ":0");
  vi.stubEnv("PATH", folder);
  await openInBrowser(address, io);
  expect(said.splice(0)).toEqual([
    `*** no browser was opened: there is no command xdg-open. Open ${address} yourself. ***\n`,
  ]);
  const opened = join(folder, "opened");
  writeFileSync(
    join(folder, "xdg-open"),
    `#!/bin/sh\nprintf %s "$1" > '${opened}.part'\nmv '${opened}.part' '${opened}'\n`,
  );
  chmodSync(join(folder, "xdg-open"), 0o755);
  vi.stubEnv("PATH", [folder, "/usr/bin", "/bin"].join(delimiter));
  await openInBrowser(address, io);
  await expect.poll(() => readFileSync(opened, "utf8")).toBe(address);
  expect(said).toEqual([]);
});
