/** @file All checks of one random program. Which budgets, strategies and threads it is put to is drawn by its seed too. */
import { tmpdir } from "node:os";
import type { LossyOptions } from "../../src/api/index.ts";
import { Random } from "../support/random.ts";
import { checkDonation, checkRounded, checkVariant, type Expected, expectedBits } from "./checks/bits.ts";
import { COMPARED, checkPlans, roughRange } from "./checks/plans.ts";
import { checkReference } from "./checks/reference.ts";
import { errorText, type Session, type TargetName } from "./checks/session.ts";
import { checkTape } from "./checks/tape.ts";
import { type Finding, GROUP_NAMES, type Group, kindsOf, noCounts, type Outcome } from "./findings.ts";
import { drawRecipe, fuzzProgram, type Recipe, type RecipeOptions } from "./program.ts";

export interface CheckOptions extends RecipeOptions {
  /** Drawn where it is not given. */
  readonly target?: TargetName | undefined;
  /** Only findings of these groups count, and those of processes. */
  readonly groups?: readonly Group[] | undefined;
  readonly begin?: ((stage: string) => void) | undefined;
}

/** One program in eight is for a C compiler, which takes seconds for each plan. */
const drawTarget = (random: Random): TargetName => (random.chance(1 / 8) ? "native" : "wasm");

const aboutText = ({ dtype, cast, mode, size, steps, without }: Recipe): string =>
  `${mode} ${dtype}${cast ? ` cast to ${cast}` : ""} ${size}, ${steps.length - without.size} steps`;

const ROUNDED: readonly LossyOptions["residuals"][] = [
  { linear: 4, rest: 8 },
  { linear: 1, rest: "bf16" },
  { linear: "bf16" },
  { linear: { sparse: 0.2 }, rest: 8 },
  { linear: { rank: 3 } },
];

/** Values in a file, and those that are rounded: only large ones are. */
function checkForms({ program, ...session }: Session, expected: Expected, memory: number): void {
  const random = new Random(Math.imul(program.recipe.seed, 40_503) + 5);
  const share = program.recipe.size === "wide" ? 0.7 : 0.2;
  const [isMoved, isRounded] = [random.chance(share), random.chance(share)];
  const bandwidth = random.pick(["100MB/s", "2GB/s", "100GB/s"]);
  const lossy = { residuals: random.pick(ROUNDED), seed: random.int(3) };
  const spill = { to: tmpdir(), bandwidth };
  if (isMoved) checkVariant({ program, ...session }, expected, { memory, spill });
  if (isMoved && program.recipe.mode === "training") checkDonation({ program, ...session }, { memory, spill });
  if (isRounded) checkRounded({ program, ...session }, lossy);
}

function runChecks(session: Session, options: CheckOptions): void {
  const { random, target, program } = session;
  const isAboutPlans = (options.groups ?? GROUP_NAMES).some((group) => group !== "bits" && group !== "process");
  const isNative = target === "native";
  const [which, further, part] = [random.next(), random.next(), random.next()];
  const strategy = random.pick(COMPARED);
  const onThreads = random.chance(isNative ? 0.5 : 0.25);
  const expected = expectedBits(session);
  if (!expected) return;
  checkReference(session, options);
  if (!isNative) checkTape(session, expected);
  const { least, most } = isAboutPlans ? checkPlans(session) : roughRange(session);
  const memory = least + Math.floor((most - least) * part);
  if (!isNative || which < 0.5) checkVariant(session, expected, { memory });
  // The smallest plan takes longest to find.
  const isSmallest = isNative ? which >= 0.5 : isAboutPlans || which >= 0.7;
  if (isSmallest) checkVariant(session, expected, { memory: "min" });
  if (!isNative && further < 0.5) checkVariant(session, expected, { strategy, memory: most });
  // Threads have workspaces of their own, so budgets of one thread are not theirs.
  if (onThreads) checkVariant(session, expected, further < 0.4 ? { threads: 2, memory: "min" } : { threads: 2 });
  checkForms(session, expected, memory);
  if (program.recipe.mode === "training") checkDonation(session, which < 0.3 && !isNative ? { memory: "min" } : {});
}

export function checkProgram(seed: number, options: CheckOptions = {}): Outcome {
  const random = new Random(Math.imul(seed, 65_537) + 11);
  const drawn = drawTarget(random);
  const { target = drawn, groups = GROUP_NAMES, begin = () => {} } = options;
  const wanted = kindsOf([...groups, "process"]);
  const recipe = drawRecipe(seed, options);
  const findings: Finding[] = [];
  const counts = noCounts();
  const started = process.cpuUsage();
  const found: Session["found"] = (kind, what) => {
    if (wanted.has(kind)) findings.push({ kind, what });
  };
  try {
    runChecks({ program: fuzzProgram(recipe), target, random, counts, found, begin }, options);
  } catch (error) {
    found("threw", errorText(error));
  }
  const { user, system } = process.cpuUsage(started);
  return { seed, target, about: aboutText(recipe), findings, counts, cpuSeconds: (user + system) / 1e6 };
}
