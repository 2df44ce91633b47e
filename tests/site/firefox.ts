/**
 * @file Firefox, driven by its own protocol (Marionette): messages `LENGTH:[0, id, command, parameters]` over a socket, answers
 * `LENGTH:[1, id, error, result]`. Debian's build needs no driver for it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

/** FIREFOX, or the first of the usual names on the path. */
export function firefoxPath(env: NodeJS.ProcessEnv = process.env): string | null {
  if (env.FIREFOX) return env.FIREFOX;
  const folders = (env.PATH ?? "").split(delimiter);
  return (
    ["firefox-esr", "firefox"]
      .flatMap((name) => folders.map((folder) => join(folder, name)))
      .find((path) => existsSync(path)) ?? null
  );
}

export const NO_FIREFOX =
  "no Firefox found: apt-get install firefox-esr, or set FIREFOX to one. Pages were not opened in it.";

const PREFERENCES = {
  "browser.dom.window.dump.enabled": true,
  "devtools.console.stdout.content": true,
  "browser.shell.checkDefaultBrowser": false,
  "datareporting.policy.dataSubmissionEnabled": false,
  "network.captive-portal-service.enabled": false,
  "app.update.enabled": false,
};

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}

export class Firefox {
  readonly #process: ChildProcess;
  readonly #socket: Socket;
  readonly #profile: string;
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  #text = Buffer.alloc(0);
  #id = 0;
  /** What pages and the browser said so far. */
  output = "";

  private constructor(process: ChildProcess, socket: Socket, profile: string) {
    this.#process = process;
    this.#socket = socket;
    this.#profile = profile;
    socket.on("data", (chunk) => this.#read(chunk));
    for (const stream of [process.stdout, process.stderr])
      stream?.on("data", (chunk: Buffer) => {
        this.output += chunk.toString("utf8");
      });
  }

  static async start(path: string): Promise<Firefox> {
    const port = await freePort();
    const profile = mkdtempSync(join(tmpdir(), "firefox-"));
    const all = Object.entries({ ...PREFERENCES, "marionette.port": port });
    writeFileSync(join(profile, "user.js"), all.map(([key, value]) => `user_pref("${key}", ${value});\n`).join(""));
    const child = spawn(path, ["--headless", "--marionette", "--no-remote", "--profile", profile, "about:blank"]);
    for (let tries = 0; tries < 600; tries++) {
      const socket = await new Promise<Socket | null>((resolve) => {
        const made = connect(port, "127.0.0.1", () => resolve(made)).on("error", () => resolve(null));
      });
      if (socket) {
        const firefox = new Firefox(child, socket, profile);
        await firefox.send("WebDriver:NewSession", {});
        return firefox;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    child.kill();
    throw new Error("Firefox does not answer");
  }

  #read(chunk: Buffer): void {
    this.#text = Buffer.concat([this.#text, chunk]);
    for (;;) {
      const colon = this.#text.indexOf(":");
      const length = Number(this.#text.subarray(0, colon).toString());
      if (colon < 0 || this.#text.length < colon + 1 + length) return;
      const message = JSON.parse(this.#text.subarray(colon + 1, colon + 1 + length).toString()) as unknown;
      this.#text = this.#text.subarray(colon + 1 + length);
      if (!Array.isArray(message)) continue; // the greeting
      const [, id, error, result] = message as [number, number, { message: string } | null, unknown];
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) waiting?.reject(new Error(error.message));
      else waiting?.resolve(result);
    }
  }

  send(command: string, parameters: object): Promise<unknown> {
    const id = ++this.#id;
    const text = JSON.stringify([0, id, command, parameters]);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#socket.write(`${Buffer.byteLength(text)}:${text}`);
    });
  }

  async open(url: string): Promise<void> {
    await this.send("WebDriver:Navigate", { url });
  }

  async run(script: string): Promise<unknown> {
    const result = (await this.send("WebDriver:ExecuteScript", { script, args: [] })) as { value: unknown };
    return result.value;
  }

  async close(): Promise<void> {
    await this.send("Marionette:Quit", { flags: ["eForceQuit"] }).catch(() => undefined);
    this.#socket.destroy();
    this.#process.kill();
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
