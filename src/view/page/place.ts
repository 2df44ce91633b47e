/**
 * @file What a page of plans shows, as fields of its address: the plan or its budget, the compared plan, the selection by
 * name, the visible part of the map and the search. Plans from files that the user opened are not in an address.
 */
import { type AddressFields, wholeField, windowOfText, windowText } from "../address.ts";
import { showEntry } from "./curve.ts";
import { type State, type Store, selectRect, selectStep, selectValue, shownOf, wholeFrame } from "./store.ts";

/** The page as it opens: the indices of its plans, and how many plans it has of its own. */
export interface FirstPlace {
  readonly plan: number;
  readonly compared: number | null;
  readonly count: number;
}

/** Fields that alone do not make an entry of the history. */
export const QUIET_FIELDS: readonly string[] = ["zoom", "search"];

/** The fields of a state; those at their defaults are empty. */
export function placeFields(state: State, first: FirstPlace): AddressFields {
  const { entries, sides, frame, budgetBytes, query, reachBytes, unfolded } = state;
  const [own, other] = sides.map(({ entry }) => entries.indexOf(entry));
  // A plan that was opened here, or the body of a loop, is not in the page that a link opens.
  if ((own ?? -1) >= first.count) return { search: query };
  const shown = entries[own ?? -1];
  const kept = budgetBytes === (shown ?? sides[0].entry).budgetBytes && shown !== undefined;
  const whole = wholeFrame(sides, reachBytes, unfolded);
  const zoomed = frame.t0 > 0 || frame.t1 < 1 || frame.a0 > 0 || frame.a1 !== whole.a1;
  return {
    plan: shown && own !== first.plan ? `${own}` : "",
    budget: kept || budgetBytes === null ? "" : `${budgetBytes}`,
    with: comparedText(other, first),
    ...selectionFields(state),
    persistent: unfolded ? "each" : "",
    zoom: zoomed ? windowText(frame) : "",
    search: query,
  };
}

function comparedText(other: number | undefined, { compared, count }: FirstPlace): string {
  if (other === (compared ?? undefined)) return "";
  if (other === undefined) return "none";
  return other >= 0 && other < count ? `${other}` : "";
}

/** Values by name, since another version of the program may number them differently. */
function selectionFields({ selection, sides }: State): AddressFields {
  if (!selection) return {};
  const { side, value, step, rect } = selection;
  const name = value === null ? "" : (sides[side]?.picture.values[value]?.name ?? "");
  return {
    value: name,
    buffer: name === "" && rect !== null ? `${rect}` : "",
    step: name === "" && rect === null && step !== null ? `${step}` : "",
    side: side === 0 ? "" : `${side}`,
  };
}

/**
 * Sets a page to what its address says; returns what could not be done.
 * @param ask shows the plan of a budget
 */
export async function applyPlace(
  store: Store,
  fields: AddressFields,
  first: FirstPlace,
  ask: (budgetBytes: number) => Promise<void>,
): Promise<readonly string[]> {
  const problems: string[] = [];
  await applyPlan(store, fields, first, { ask, problems });
  applyCompared(store, fields, first, problems);
  const { sides, reachBytes } = store.get();
  const unfolded = fields.persistent === "each";
  const frame = fields.zoom === undefined ? null : windowOfText(fields.zoom);
  if (fields.zoom !== undefined && !frame) problems.push("the part of the map is damaged");
  const whole = wholeFrame(sides, reachBytes, unfolded);
  const inside = frame && frame.a1 <= whole.a1 * 1.001 ? frame : whole;
  store.set({ unfolded, frame: inside, query: fields.search ?? "", selection: null });
  applySelection(store, fields, problems);
  return problems;
}

interface PlanChoice {
  readonly ask: (budgetBytes: number) => Promise<void>;
  readonly problems: string[];
}

async function applyPlan(
  store: Store,
  fields: AddressFields,
  first: FirstPlace,
  { ask, problems }: PlanChoice,
): Promise<void> {
  const [plan, budget] = [wholeField(fields, "plan"), wholeField(fields, "budget")];
  const entry = store.get().entries[plan ?? first.plan];
  if (plan === undefined || !entry || (plan ?? 0) >= first.count) problems.push("there is no such plan");
  if (budget === undefined) problems.push("the budget is no number of bytes");
  if (entry && (budget === null || budget === undefined || plan !== null)) {
    if (store.get().sides[0].entry !== entry) showEntry(store, entry);
    store.set({ budgetBytes: budget ?? entry.budgetBytes });
  } else if (typeof budget === "number") {
    store.set({ budgetBytes: budget });
    await ask(budget);
  }
}

function applyCompared(store: Store, fields: AddressFields, first: FirstPlace, problems: string[]): void {
  const { sides, entries } = store.get();
  const named = fields.with === "none" ? -1 : wholeField(fields, "with");
  const other = entries[named ?? first.compared ?? -1];
  if (named === undefined || (named !== null && named >= 0 && !other))
    problems.push("there is no such plan to compare");
  if (other === sides[1]?.entry) return;
  store.set({ sides: other ? [sides[0], shownOf(other)] : [sides[0]] });
}

function applySelection(store: Store, fields: AddressFields, problems: string[]): void {
  const { sides } = store.get();
  const asked = wholeField(fields, "side") ?? 0;
  const valueIn = (at: number): number =>
    sides[at]?.picture.values.findIndex(({ name }) => name === fields.value) ?? -1;
  // A value of the other plan is better than none.
  const side = [asked, ...sides.keys()].find((at) => valueIn(at) >= 0) ?? asked;
  const picture = sides[side]?.picture;
  const [step, buffer] = [wholeField(fields, "step"), wholeField(fields, "buffer")];
  if (fields.value !== undefined) {
    const value = valueIn(side);
    if (value >= 0) selectValue(store, side, value);
    else problems.push(`the value ${fields.value.slice(0, 80)} is not in this plan`);
  } else if (typeof buffer === "number") selectRect(store, side, buffer);
  else if (typeof step === "number" && picture && step < picture.columns) selectStep(store, side, step);
}
