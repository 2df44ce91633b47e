/**
 * @file The server behind the page: loopback only, reads only. A request must name this machine as its host, against
 * DNS rebinding, and must not come from another site's page, since plans cost time. No page can embed this one.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { TidemarkError } from "../base/errors.ts";
import type { PlanAnswers } from "./view-thread.ts";

export interface ViewServer {
  /** The address of the page. */
  readonly url: string;
  readonly closed: Promise<void>;
  close(): void;
}

interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const HOST = "127.0.0.1";
const json = (value: unknown): Reply => ({ status: 200, type: "application/json", body: JSON.stringify(value) });
const text = (status: number, body: string): Reply => ({ status, type: "text/plain", body: `${body}\n` });

/** @param port 0: any that is free */
export async function serveView(page: string, plans: PlanAnswers | null, port: number): Promise<ViewServer> {
  const server = createServer((request, response) => {
    const ownPort = (server.address() as AddressInfo | null)?.port;
    void replyTo(request, page, plans, [`${HOST}:${ownPort}`, `localhost:${ownPort}`]).then((reply) =>
      send(response, reply),
    );
  });
  await new Promise<void>((resolve, reject) => {
    const refuse = (why: string): void => {
      const help = "give another --port, or none for one that is free";
      reject(new TidemarkError("UsageError", `view: port ${port}: ${why}`, { help }));
    };
    server.once("error", (error: Error & { readonly code?: string }) => refuse(error.code ?? error.message));
    if (port > 65535) refuse("there is no such port");
    else server.listen(port, HOST, resolve);
  });
  const closed = new Promise<void>((resolve) => {
    server.once("close", () => resolve());
  });
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://${HOST}:${(server.address() as AddressInfo).port}/`, closed, close };
}

async function replyTo(
  { method, headers, url = "/" }: IncomingMessage,
  page: string,
  plans: PlanAnswers | null,
  hosts: readonly string[],
): Promise<Reply> {
  if (!hosts.includes(headers.host ?? "")) return text(403, "this server answers only requests to its own address");
  const site = headers["sec-fetch-site"];
  if (url !== "/" && site !== undefined && site !== "same-origin" && site !== "none") {
    return text(403, "this server answers only requests from its own page");
  }
  if (method !== "GET" && method !== "HEAD") return text(405, "this server is read-only");
  if (!url.startsWith("/")) return text(400, "not an address");
  const { pathname, searchParams } = new URL(`http://${HOST}${url}`);
  try {
    if (pathname === "/") return { status: 200, type: "text/html; charset=utf-8", body: page };
    if (pathname === "/curve" && plans) return json({ curve: await plans.curve() });
    if (pathname === "/plan" && plans) {
      const budget = Number(searchParams.get("budget") || "x");
      return Number.isSafeInteger(budget) && budget >= 0 ? json(await plans.within(budget)) : text(400, "budget=BYTES");
    }
    if (pathname === "/story" && plans) {
      const story = await plans.story(searchParams.get("plan") ?? "", Number(searchParams.get("value") || "x"));
      return story ? json({ story }) : text(404, "no such value");
    }
  } catch (error) {
    return text(500, error instanceof Error ? error.message : String(error));
  }
  return text(404, "not found");
}

function send(response: ServerResponse, { status, type, body }: Reply): void {
  response.writeHead(status, {
    "content-type": type,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "frame-ancestors 'none'",
  });
  response.end(body);
}
