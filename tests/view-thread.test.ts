/** @file The server behind the page while it plans: what needs no search is answered, and the command ends when it is told to. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import type { PlanReply, StoryReply } from "../src/view/data.ts";
import { ROOT } from "./support/project.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-view-thread-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A program whose plans for small budgets are searched for. */
function chain(length: number): string {
  const lines = Array.from({ length }, (_, i) => `  a${i + 1}: f32[64,64] = tanh(a${i})`);
  const back = Array.from({ length }, (_, i) => `  b${i + 1}: f32[64,64] = mul(b${i}, a${length - i})`);
  const text = `func chain(a0: f32[64,64], b0: f32[64,64]) {\n${[...lines, ...back].join("\n")}\n  return b${length}\n}\n`;
  const path = join(folder, "chain.ir");
  writeFileSync(path, text);
  return path;
}

it("answers requests while it searches for a plan", async () => {
  const server = spawn(process.execPath, [join(ROOT, "bin", "tidemark.js"), "view", chain(40), "--target", "wasm"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    const [printed] = (await once(server.stdout, "data")) as [Buffer];
    const url = printed.toString().trim();
    const order: string[] = [];
    const ask = async (name: string, path: string): Promise<string> => {
      const body = await (await fetch(url + path)).text();
      order.push(name);
      return body;
    };
    const plan = ask("plan", "plan?budget=600000");
    const [page, story] = await Promise.all([ask("page", ""), ask("story", "story?plan=plan-0&value=0")]);
    expect(order).not.toContain("plan");
    expect(page).toContain("<!doctype html>");
    expect((JSON.parse(story) as StoryReply).story[0]).toContain("f32[64,64] is at b");
    const reply = JSON.parse(await plan) as PlanReply;
    expect(reply).toMatchObject({ entry: { budgetBytes: 600000 } });
    // of a plan that the thread made
    const told = JSON.parse(await ask("story", "story?plan=budget-600000&value=0")) as StoryReply;
    expect(told.story[0]).toContain("f32[64,64] is at b");
    expect((await fetch(`${url}story?plan=budget-1&value=0`)).status).toBe(404);
  } finally {
    server.kill("SIGTERM");
    if (server.exitCode === null) await once(server, "exit");
  }
});
