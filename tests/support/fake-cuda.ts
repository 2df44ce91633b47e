/**
 * @file A CUDA driver that is none: a library of C with the driver's functions, whose device memory is the process's own and
 * whose kernels do nothing. What it does instead can be told to fail.
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { driverFunctions } from "../../src/node/cuda/driver.ts";
import { compileTo, systemCompiler } from "../../src/node/native/compiler.ts";

/** Functions that do something, as C; the others succeed. */
const WORKING: Readonly<Record<string, string>> = {
  cuDriverGetVersion: "(int *v) { *v = 13000; return 0; }",
  cuGetErrorName: '(int e, const char **s) { *s = e == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE"; return 0; }',
  cuDeviceGetCount: "(int *n) { *n = 1; return 0; }",
  cuDeviceGet: "(int *d, int i) { *d = i; return 0; }",
  cuDeviceGetName: '(char *s, int n, int d) { strncpy(s, "Fake GPU", n); return 0; }',
  cuDeviceGetAttribute: "(int *v, int a, int d) { *v = a == 75 ? 9 : a == 16 ? 132 : 0; return 0; }",
  cuDevicePrimaryCtxRetain: "(void **c, int d) { *c = (void *)8; return 0; }",
  cuMemGetInfo_v2: "(size_t *f, size_t *t) { *t = 1 << 20; *f = *t - used; return 0; }",
  cuMemAlloc_v2: "(void **p, size_t n) { *p = malloc(n); used += malloc_usable_size(*p); return 0; }",
  cuMemFree_v2: "(void *p) { used -= malloc_usable_size(p); free(p); return 0; }",
  cuMemHostAlloc: "(void **p, size_t n, unsigned f) { *p = malloc(n); return 0; }",
  cuMemcpyHtoDAsync_v2: "(void *d, void *s, size_t n, void *q) { memcpy(d, s, n); return 0; }",
  cuMemcpyDtoHAsync_v2: "(void *d, void *s, size_t n, void *q) { memcpy(d, s, n); return 0; }",
  cuMemcpyDtoDAsync_v2: "(void *d, void *s, size_t n, void *q) { memcpy(d, s, n); return 0; }",
  cuMemsetD8Async: "(void *d, unsigned char v, size_t n, void *q) { memset(d, v, n); return 0; }",
};

/**
 * The path of a driver; `changes` are bodies of functions in place of what they do here, null for a function it lacks; `before` is what
 * those need.
 */
export function fakeDriver(changes: Readonly<Record<string, string | null>> = {}, before = ""): string {
  const compiler = systemCompiler();
  if (typeof compiler === "string") throw new Error(compiler);
  const functions = { ...WORKING, ...changes };
  const texts = driverFunctions().flatMap((name) => {
    const body = name in functions ? functions[name] : "() { return 0; }";
    return body === null ? [] : [`int ${name}${body}`];
  });
  const path = join(mkdtempSync(join(tmpdir(), "tidemark-fake-cuda-")), "libcuda.so");
  compileTo(
    compiler,
    `#include <malloc.h>\n#include <stdlib.h>\n#include <string.h>\nstatic size_t used;\n${before}\n${texts.join("\n")}\n`,
    path,
  );
  return path;
}
