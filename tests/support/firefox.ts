/**
 * @file Debian's Firefox, driven by WebDriver BiDi over its own port: playwright-core drives only a Firefox of its own making. Enough
 * to open pages, to evaluate expressions and to hear of errors.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { patience } from "./patience.ts";

interface Socket {
  send(text: string): void;
  close(): void;
  on(event: "message", heard: (data: { toString(): string }) => void): void;
  on(event: "open" | "error", heard: (error?: Error) => void): void;
}

const require = createRequire(import.meta.url);
const { ws: WebSocket } = require("playwright-core/lib/utilsBundle") as { readonly ws: new (url: string) => Socket };

/** FIREFOX, or the first of the usual names on the path. */
export function firefoxPath(env: NodeJS.ProcessEnv = process.env): string | null {
  if (env.FIREFOX) return env.FIREFOX;
  const folders = (env.PATH ?? "").split(delimiter);
  const paths = ["firefox-esr", "firefox"].flatMap((name) => folders.map((folder) => join(folder, name)));
  return paths.find((path) => existsSync(path)) ?? null;
}

export interface Firefox {
  /** Opens an address and waits until it is loaded. */
  open(address: string): Promise<void>;
  /** The value of an expression in the page, as JSON. */
  evaluate<T>(expression: string): Promise<T>;
  /** Errors of pages since the last call. */
  problems(): readonly string[];
  close(): void;
}

/** The address that it listens on, from what it prints. */
function listening(browser: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let printed = "";
    browser.stderr?.on("data", (data: Buffer) => {
      printed += data.toString();
      const [, address] = /WebDriver BiDi listening on (ws:\S+)/.exec(printed) ?? [];
      if (address) resolve(address);
    });
    browser.on("exit", (code) => reject(new Error(`Firefox ended with ${code}: ${printed}`)));
    setTimeout(() => reject(new Error(`Firefox does not listen: ${printed}`)), patience(60_000));
  });
}

type Reply = { readonly id?: number; readonly type: string; readonly method?: string; readonly result?: unknown };

function connection(socket: Socket, problems: string[]) {
  const waiting = new Map<number, (reply: Reply) => void>();
  let calls = 0;
  socket.on("message", (data) => {
    const reply = JSON.parse(data.toString()) as Reply & {
      readonly params?: { readonly level: string; readonly text: string };
    };
    if (reply.id !== undefined) waiting.get(reply.id)?.(reply);
    else if (reply.method === "log.entryAdded" && reply.params?.level === "error") problems.push(reply.params.text);
  });
  return async <T>(method: string, params: object): Promise<T> => {
    const id = ++calls;
    const answer = new Promise<Reply>((resolve) => waiting.set(id, resolve));
    socket.send(JSON.stringify({ id, method, params }));
    const reply = await answer;
    if (reply.type === "error") throw new Error(`${method}: ${JSON.stringify(reply)}`);
    return reply.result as T;
  };
}

export async function launchFirefox(path: string): Promise<Firefox> {
  const profile = mkdtempSync(join(tmpdir(), "tidemark-firefox-"));
  const words = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"];
  const browser = spawn(path, words, { stdio: ["ignore", "ignore", "pipe"] });
  const socket = new WebSocket(`${await listening(browser)}/session`);
  await new Promise<void>((resolve, reject) => {
    socket.on("open", () => resolve());
    socket.on("error", reject);
  });
  const problems: string[] = [];
  const call = connection(socket, problems);
  await call("session.new", { capabilities: {} });
  await call("session.subscribe", { events: ["log.entryAdded"] });
  const { context } = await call<{ readonly context: string }>("browsingContext.create", { type: "tab" });
  return {
    async open(address) {
      await call("browsingContext.navigate", { context, url: address, wait: "complete" });
    },
    async evaluate<T>(expression: string): Promise<T> {
      const wrapped = `(async () => JSON.stringify(await (${expression})))()`;
      const params = { expression: wrapped, target: { context }, awaitPromise: true };
      const { result } = await call<{ readonly result: { readonly value: string } }>("script.evaluate", params);
      return JSON.parse(result.value) as T;
    },
    problems: () => problems.splice(0),
    close() {
      socket.close();
      browser.kill();
      browser.on("exit", () => rmSync(profile, { recursive: true, force: true }));
    },
  };
}
