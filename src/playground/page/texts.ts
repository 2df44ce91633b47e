/**
 * @file Runs texts of the editor in workers. Every text has its own worker, so its changes to the library or to
 * JavaScript do not affect the next:
 *
 *   spare ──text──→ trial ──seen──→ good     answers for budgets and stories
 *     ▲               ╰──complaint, endless, newer text──→ ended
 *     ╰ started in advance, so that a text does not wait for a worker
 *
 * The worker of the last correct text stays until another replaces it.
 */
import type { PlanReply, ViewCurve } from "../../view/data.ts";
import { type Complaint, isComplaint } from "../complaint.ts";
import type { Sight } from "../study.ts";
import { type Client, createClient, ownWorker } from "./client.ts";

/** Time limits of a text's run and of planning. */
const [RUN_LIMIT_MS, PLAN_LIMIT_MS] = [3000, 30000] as const;

const ENDLESS = `stopped: the text ran for more than ${RUN_LIMIT_MS / 1000} seconds\n  help: is there a loop without an end?`;

/** A worker for one text. */
interface Reader {
  readonly client: Client;
  /** Starts the time limit of the text's run. */
  limit(): void;
  wasEndless(): boolean;
}

function createReader(curve: (from: Reader, curve: ViewCurve) => void, start: () => Worker): Reader {
  let [timer, endless] = [0, false];
  const client = createClient((said) => {
    if (said.told === "ran") clearTimeout(timer);
    if (said.told === "curve") curve(reader, said.curve);
  }, start);
  const reader: Reader = {
    client,
    limit() {
      timer = window.setTimeout(() => {
        endless = true;
        client.end();
      }, RUN_LIMIT_MS);
    },
    wasEndless: () => endless,
  };
  client.start();
  return reader;
}

export interface Texts {
  /** The analysis of a text; null if a newer text replaced it. */
  look(text: string): Promise<Sight | Complaint | null>;
  /** Cancels the current analysis. */
  drop(): void;
  within(budgetBytes: number): Promise<PlanReply>;
  story(asks: string, value: number): Promise<readonly string[]>;
}

/**
 * @param curve called when the shown text's curve has new points
 * @param start makes a worker that studies texts
 */
export function createTexts(curve: (curve: ViewCurve) => void, start: () => Worker = ownWorker): Texts {
  const heard = (from: Reader, points: ViewCurve): void => {
    if (from === good) curve(points);
  };
  let good: Reader | null = null;
  let trial: Reader | null = null;
  let spare: Reader | null = createReader(heard, start);
  const drop = (): void => {
    trial?.client.end();
    trial = null;
  };
  const ask = <T>(call: (client: Client) => Promise<T>): Promise<T> =>
    good ? call(good.client) : Promise.reject("there is no program to plan");
  return {
    drop,
    async look(text) {
      drop();
      const mine = spare ?? createReader(heard, start);
      [spare, trial] = [null, mine];
      mine.limit();
      const sight = await mine.client
        .callWithin(PLAN_LIMIT_MS, "study", text)
        .catch((why: unknown): Complaint => ({ line: null, message: mine.wasEndless() ? ENDLESS : `no plan: ${why}` }));
      // Not earlier: starting a worker slows down the active one.
      spare ??= createReader(heard, start);
      if (trial !== mine) return null;
      trial = null;
      if (isComplaint(sight)) mine.client.end();
      else {
        good?.client.end();
        good = mine;
      }
      return sight;
    },
    within: (budgetBytes) => ask((client) => client.callWithin(PLAN_LIMIT_MS, "studyWithin", budgetBytes)),
    story: (asks, value) => ask((client) => client.callWithin(PLAN_LIMIT_MS, "studyStory", asks, value)),
  };
}
