/** @file Opens an address in the user's browser by the command of the system for that. */
import { spawn } from "node:child_process";
import type { Io } from "./command.ts";

export type Opening =
  | { readonly command: string; readonly args: readonly string[] }
  /** Why no browser is opened. */
  | { readonly problem: string };

/** The command that opens an address; or why there is none. */
export function openingOf(
  address: string,
  platform: NodeJS.Platform,
  env: Readonly<Record<string, string | undefined>>,
): Opening {
  if (env.CI) return { problem: "CI is set, so no one looks at it" };
  if (platform === "darwin") return { command: "open", args: [address] };
  // `start` takes its first quoted word as a title, and `&` as the end of a command.
  if (platform === "win32") return { command: "cmd", args: ["/c", "start", '""', address.replaceAll("&", "^&")] };
  const hasDisplay = [env.DISPLAY, env.WAYLAND_DISPLAY, env.WSL_DISTRO_NAME, env.BROWSER].some(Boolean);
  if (!hasDisplay) return { problem: "there is no display (DISPLAY and WAYLAND_DISPLAY are not set)" };
  return { command: "xdg-open", args: [address] };
}

/** Opens an address, or says loudly why not; the program goes on either way. */
export async function openInBrowser(address: string, io: Io): Promise<void> {
  const opening = openingOf(address, process.platform, process.env);
  const problem = "problem" in opening ? opening.problem : await started(opening.command, opening.args);
  if (problem !== null) io.err(`*** no browser was opened: ${problem}. Open ${address} yourself. ***\n`);
}

/** Null once the command runs; it outlives this program. */
function started(command: string, args: readonly string[]): Promise<string | null> {
  return new Promise((resolve) => {
    const child = spawn(command, [...args], { stdio: "ignore", detached: true });
    child.once("spawn", () => {
      child.unref();
      resolve(null);
    });
    child.once("error", (error: Error & { readonly code?: string }) => {
      resolve(error.code === "ENOENT" ? `there is no command ${command}` : error.message);
    });
  });
}
