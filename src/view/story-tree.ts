/** @file Explanations as data, without their plans (made by stories.ts). */

/** The sentences of every value, numbered as in the plan's JSON, and the same for bodies of steps, by `STEP.BODY`. */
export interface StoryTree {
  readonly values: readonly (readonly string[])[];
  readonly bodies: Readonly<Record<string, StoryTree>>;
}

/** The name of a plan inside of another. */
export const nameInside = (asks: string, step: number, body: number): string => `${asks}/${step}.${body}`;

/** The explanation of a value in a plan or in a body of its steps. */
export function storyIn(tree: StoryTree, inside: readonly string[], value: number): readonly string[] {
  const [head, ...rest] = inside;
  if (head === undefined) return tree.values[value] ?? [];
  const next = Object.hasOwn(tree.bodies, head) ? tree.bodies[head] : undefined;
  return next ? storyIn(next, rest, value) : [];
}
