/** @file Requests to the page's server. */
import type { CurveReply, PlanReply, StoryReply } from "../data.ts";
import type { Store } from "./store.ts";

async function answer<T>(path: string): Promise<T> {
  const reply = await fetch(path);
  if (!reply.ok) return Promise.reject((await reply.text()).trim());
  return (await reply.json()) as T;
}

export const fetchPlan = (budgetBytes: number): Promise<PlanReply> => answer(`plan?budget=${budgetBytes}`);

export async function fetchStory(asks: string, value: number): Promise<readonly string[]> {
  return (await answer<StoryReply>(`story?plan=${encodeURIComponent(asks)}&value=${value}`)).story;
}

/** Shows the curve as its points arrive; it takes as long as planning does. */
export async function fetchCurve(store: Store): Promise<void> {
  try {
    for (let isComplete = false; !isComplete; ) {
      const { curve } = await answer<CurveReply>("curve");
      store.set({ curve });
      isComplete = curve.progress === undefined;
    }
  } catch (error) {
    store.set({ message: `no curve: ${String(error)}` });
  }
}
