/**
 * @file The text of the worker that plans and generates code (compile-worker.ts), bundled to one script. The build puts it in the
 * place of this file (scripts/worker-source.mjs), which is loaded when it is first needed; unbuilt sources have none.
 */
export const WORKER_SOURCE: string | null = null;
