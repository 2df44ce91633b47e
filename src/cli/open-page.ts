/** @file Opens an address of this machine in the user's browser, by the command that the system has for it. */
import { spawn } from "node:child_process";

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

/** @param failed told in one line why it could not be opened */
export function openPage(url: string, failed: (why: string) => void): void {
  const [command = "xdg-open", ...words] = OPENERS[process.platform] ?? [];
  const child = spawn(command, [...words, url], { stdio: "ignore", detached: true });
  child.once("error", (error) => failed(`no browser was opened: ${error.message}`));
  child.unref();
}
