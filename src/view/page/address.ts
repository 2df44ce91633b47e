/**
 * @file Keeps the page's address in step with its state. A page gives its state as fields and can be set by fields; this
 * writes them shortly after the last change, as a new entry of the history where more than the quiet fields changed. When
 * the user goes back, forward or edits the address, the page is set to it.
 */
import { type AddressFields, addressText, readAddress } from "../address.ts";

/** Delay after the last change; browsers limit how often an address may change. */
const PAUSE_MS = 300;

export interface AddressedPage {
  /** The state of the page; fields at their defaults are left out or empty. */
  fields(): AddressFields | Promise<AddressFields>;
  /** Sets the page to a state; fields that are missing are at their defaults. Returns what could not be done. */
  apply(fields: AddressFields): readonly string[] | Promise<readonly string[]>;
  /** Shows a message. */
  note(text: string): void;
  /** Fields that change all the time, like a search: they alone do not make an entry of the history. */
  readonly quiet: readonly string[];
}

export interface Address {
  /** Sets the page to its address, if that has a state, and follows it from now on. */
  follow(): Promise<void>;
  /** To be called after every change of the page. */
  changed(): void;
  /** The address of the page as it is now. */
  href(): Promise<string>;
}

export function createAddress(page: AddressedPage): Address {
  let timer = 0;
  /** The number of the latest request to set the page; an earlier one that is still at work is out of date. */
  let latest = 0;
  let busy = false;
  const hash = async (): Promise<string> => addressText(await page.fields());
  const write = async (how: "pushState" | "replaceState" | null): Promise<void> => {
    const next = await hash();
    if (busy || next === addressText(fieldsOf(location.hash))) return;
    const name = how ?? (sameBut(page.quiet, next, location.hash) ? "replaceState" : "pushState");
    try {
      history[name](null, "", `${location.pathname}${location.search}${next}`);
    } catch {
      // A page without an address of its own, or too many changes: the state stays on the page.
    }
  };
  const set = async (always: boolean): Promise<void> => {
    const mine = ++latest;
    const reading = readAddress(location.hash);
    if ("problem" in reading) return page.note(`The address was ignored: ${reading.problem}.`);
    if (!always && Object.keys(reading.fields).length === 0) return undefined;
    busy = true;
    const problems = await page.apply(reading.fields);
    if (mine !== latest) return undefined;
    busy = false;
    if (problems.length > 0) page.note(`A part of the address was ignored: ${problems.join("; ")}.`);
    return undefined;
  };
  return {
    async follow() {
      window.addEventListener("hashchange", () => void set(true));
      await set(false);
    },
    changed() {
      clearTimeout(timer);
      timer = window.setTimeout(() => void write(null), PAUSE_MS);
    },
    async href() {
      await write(null);
      return `${location.href.replace(/#.*$/s, "")}${await hash()}`;
    },
  };
}

function fieldsOf(hash: string): AddressFields {
  const reading = readAddress(hash);
  return "fields" in reading ? reading.fields : {};
}

/** Whether two addresses differ at most in some fields. */
function sameBut(names: readonly string[], a: string, b: string): boolean {
  const rest = (hash: string): string =>
    addressText(Object.fromEntries(Object.entries(fieldsOf(hash)).filter(([name]) => !names.includes(name))));
  return rest(a) === rest(b);
}
