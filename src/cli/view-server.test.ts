/** @file The server behind the page: what it answers, and to whom. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { CurveReply, PlanReply, StoryReply, ViewCurve } from "../view/data.ts";
import { livePlans } from "../view/plans.ts";
import { readGraphs } from "./load.ts";
import { machineModel } from "./machine.ts";
import { plansOfLoaded } from "./plan-figures.ts";
import { serveView, type ViewServer } from "./view-server.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-view-"));
let server: ViewServer;

beforeAll(async () => {
  const path = join(folder, "chain.ir");
  const lines = Array.from({ length: 6 }, (_, i) => `  a${i + 1}: f32[64,64] = tanh(a${i})`);
  const text = `func chain(a0: f32[64,64]) {\n${lines.join("\n")}\n  y: f32[64,64] = mul(a6, a1)\n  return y\n}\n`;
  writeFileSync(path, text);
  const [graph] = readGraphs(path);
  const settings = { target: "wasm", memory: {}, machine: machineModel(() => {}) } as const;
  const { plans } = plansOfLoaded({ kind: "graph", name: "chain", graph: graph! }, settings);
  server = await serveView(
    "<!doctype html>page",
    livePlans(plans, 4, new Map([["plan-0", plans.storeAll.result.plan]])),
    0,
  );
});

afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Answer {
  readonly status: number;
  readonly body: string;
}

function ask(path: string, options: { host?: string; method?: string; site?: string } = {}): Promise<Answer> {
  const { hostname, port, host } = new URL(server.url);
  return new Promise((resolve, reject) => {
    const sent = request({
      hostname,
      port,
      path,
      method: options.method ?? "GET",
      headers: { host: options.host ?? host, ...(options.site ? { "sec-fetch-site": options.site } : {}) },
    });
    sent.on("response", (response) => {
      let body = "";
      response.on("data", (part: Buffer) => {
        body += part.toString();
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
    });
    sent.on("error", reject);
    sent.end();
  });
}

it("serves the page on loopback and nothing else", async () => {
  expect(new URL(server.url).hostname).toBe("127.0.0.1");
  expect(await ask("/")).toEqual({ status: 200, body: "<!doctype html>page" });
  expect((await ask("/../../package.json")).status).toBe(404);
  expect((await ask("/", { method: "POST" })).status).toBe(405);
});

it("outlives addresses that are none", async () => {
  expect((await ask("//[")).status).toBe(404);
  expect((await ask("*")).status).toBe(400);
  expect((await ask("/")).status).toBe(200);
});

it("answers only to its own name: no other site can reach it by a name that leads here", async () => {
  expect((await ask("/", { host: "evil.example" })).status).toBe(403);
  expect((await ask("/plan?budget=1", { host: "evil.example:80" })).status).toBe(403);
  expect((await ask("/", { host: `localhost:${new URL(server.url).port}` })).status).toBe(200);
});

it("plans for its own page, not for a page of another site or port that asks in passing", async () => {
  for (const path of ["/curve", "/plan?budget=100000", "/story?plan=plan-0&value=0"]) {
    for (const site of ["cross-site", "same-site"]) expect((await ask(path, { site })).status).toBe(403);
    for (const site of ["same-origin", "none"]) expect((await ask(path, { site })).status).toBe(200);
  }
  expect((await ask("/", { site: "cross-site" })).status).toBe(200);
});

it("is not shown inside of another page", async () => {
  const reply = await fetch(server.url);
  expect(reply.headers.get("content-security-policy")).toBe("frame-ancestors 'none'");
});

it("plans for a budget, refuses one that is too small, and knows the curve", async () => {
  const curveNow = async (): Promise<ViewCurve> => (JSON.parse((await ask("/curve")).body) as CurveReply).curve;
  let curve = await curveNow();
  while (!curve.whole) curve = await curveNow();
  expect(await curveNow()).toEqual(curve);
  const most = curve.points[0]!;
  expect(curve.points.every((p) => p.arenaBytes >= curve.floorBytes)).toBe(true);
  const whole = JSON.parse((await ask(`/plan?budget=${most.arenaBytes}`)).body) as PlanReply;
  expect(whole).toMatchObject({ entry: { picture: { heightBytes: most.arenaBytes, budgetBytes: most.arenaBytes } } });
  const none = JSON.parse((await ask("/plan?budget=64")).body) as PlanReply;
  expect(none).toEqual({ refusal: expect.stringContaining("PlanInfeasible") });
  for (const wrong of ["", "?budget=", "?budget=x", "?budget=-1", "?budget=1e99"]) {
    expect((await ask(`/plan${wrong}`)).status, wrong).toBe(400);
  }
});

it("says so when its port is taken", async () => {
  const taken = Number(new URL(server.url).port);
  await expect(serveView("", null, taken)).rejects.toThrow(`port ${taken}: EADDRINUSE`);
  await expect(serveView("", null, 99999)).rejects.toThrow("port 99999: there is no such port");
});

it("tells the story of a value of a plan that it gave out, and of no other", async () => {
  const story = async (query: string): Promise<Answer> => ask(`/story?${query}`);
  const { story: sentences } = JSON.parse((await story("plan=plan-0&value=0")).body) as StoryReply;
  expect(sentences[0]).toContain("f32[64,64] is at b");
  const wrong = ["plan=plan-0&value=999", "plan=plan-9&value=0", "plan=plan-0&value=", "plan=plan-0/0.0&value=0", ""];
  for (const query of wrong) expect((await story(query)).status, query).toBe(404);
});
