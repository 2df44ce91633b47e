/**
 * @file Functions that programs with products on tensor cores leave to instructions of the device: eˣ and 1 / (1 + e⁻ˣ), and
 * rounding to bf16, which has the same bits. Everywhere else
 * they are written in arithmetic (kernel/math-exp.ts), so that all targets have the same bits; products in tf32 have bits of their own,
 * and a relative error of 2⁻¹¹ beside which that of the instructions, 2⁻²² and |x|·2⁻²⁴, does not count.
 *
 * A function is found in an expression by its form: what math-exp.ts makes of a placeholder, compared node by node.
 */
import type { Expr } from "../../kernel/expr.ts";
import { expOfNegative, sigmoid } from "../../kernel/math-exp.ts";
import { asStored } from "../../kernel/stored.ts";
import type { OwnCall } from "../block/print-c-like.ts";

/** Known by its identity: stands for the argument in a form. */
const ARGUMENT: Expr = { kind: "acc", dtype: "f32" };

/** `additions`: how many take as long; a multiprocessor makes a quarter as many exponentials and reciprocals. */
const FORMS = [
  { name: "sigmoid_device", form: sigmoid(ARGUMENT), additions: 10 },
  { name: "exp_device", form: expOfNegative(ARGUMENT), additions: 5 },
  { name: "bf16_device", form: asStored("bf16", ARGUMENT), additions: 1 },
] as const;

export const DEVICE_MATH = `static __device__ __forceinline__ f32 exp_device(f32 x) { f32 y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f)); return y; }
static __device__ __forceinline__ f32 sigmoid_device(f32 x) { f32 y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(1.0f + exp_device(-x))); return y; }
static __device__ __forceinline__ f32 bf16_device(f32 x) { u32 y; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(x), "f"(0.0f)); return __uint_as_float(y); }
`;

/** Whether two expressions are equal: most are one object. */
function same(a: Expr, b: Expr): boolean {
  if (a === b) return true;
  if (a.kind === "const") return b.kind === "const" && a.dtype === b.dtype && Object.is(a.value, b.value);
  if (a.kind === "load") return b.kind === "load" && a.operand === b.operand && a.index.key === b.index.key;
  if (a.kind !== "call" || b.kind !== "call" || a.fn !== b.fn || a.dtype !== b.dtype) return false;
  return a.args.length === b.args.length && a.args.every((arg, i) => same(arg, b.args[i] as Expr));
}

/** What an expression has in the argument's place of a form; null where it is not of that form. */
function argumentOf(whole: Expr, form: Expr): Expr | null {
  const found = new Map<Expr, Expr>();
  const fits = (expr: Expr, part: Expr): boolean => {
    const before = found.get(part);
    if (before) return same(before, expr);
    if (part !== ARGUMENT) {
      if (part.kind !== "call") return same(part, expr);
      if (expr.kind !== "call" || expr.fn !== part.fn || expr.dtype !== part.dtype) return false;
      if (!part.args.every((arg, i) => fits(expr.args[i] as Expr, arg))) return false;
    }
    found.set(part, expr);
    return true;
  };
  return fits(whole, form) ? (found.get(ARGUMENT) ?? null) : null;
}

function formOf(expr: Expr): { readonly argument: Expr; readonly name: string; readonly additions: number } | null {
  for (const { name, form, additions } of FORMS) {
    const argument = expr.dtype === ARGUMENT.dtype ? argumentOf(expr, form) : null;
    if (argument) return { argument, name, additions };
  }
  return null;
}

/** The function of the device that an expression is, with its argument; null where it is none. */
export function deviceCall(expr: Expr): OwnCall | null {
  const found = formOf(expr);
  return found && { name: found.name, args: [found.argument] };
}

/** For counting work: an expression with as many additions in place of each function of the device as take its time. */
export function deviceWork(root: Expr): Expr {
  const memo = new Map<Expr, Expr>();
  const visit = (expr: Expr): Expr => {
    const known = memo.get(expr);
    if (known) return known;
    const made = counted(expr, visit);
    memo.set(expr, made);
    return made;
  };
  return visit(root);
}

function counted(expr: Expr, visit: (expr: Expr) => Expr): Expr {
  const found = formOf(expr);
  if (found) {
    const argument = visit(found.argument);
    let work = argument;
    for (let i = 0; i < found.additions; i++) {
      work = { kind: "call", fn: "add", dtype: "f32", args: [work, argument] };
    }
    return work;
  }
  if (expr.kind === "call") return { ...expr, args: expr.args.map(visit) };
  return expr.kind === "guard" ? { ...expr, then: visit(expr.then), otherwise: visit(expr.otherwise) } : expr;
}
