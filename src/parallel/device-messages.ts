/** @file What the thread that started devices and the devices say to each other (run-devices.ts, on-device.ts). */

/** Marks messages of this library among others. */
const MARK = "tidemark device";

/** To a device: what it is. */
export interface DeviceStart {
  readonly mark: typeof MARK;
  /** Of this run, for the names of locks. */
  readonly run: string;
  readonly rank: number;
  readonly size: number;
  /** Shared by all devices; of one device its own. */
  readonly block: ArrayBuffer;
  readonly input: unknown;
}

/** An error as data. */
export interface SentFailure {
  readonly message: string;
  /** The user's line, where the message does not have it. */
  readonly where: string | undefined;
  /** The error itself: threads copy its name, message and stack. */
  readonly cause: Error | undefined;
}

/** What a device says. */
export type Told =
  | { readonly told: "alive" }
  | { readonly told: "message"; readonly message: unknown }
  | { readonly told: "done"; readonly result: unknown }
  /** `follows`: another device failed first. */
  | { readonly told: "failed"; readonly error: SentFailure; readonly state: string; readonly follows: boolean };

/** From a device. */
export type DeviceMessage = Told & { readonly mark: typeof MARK };

export const marked = <T extends object>(message: T): T & { readonly mark: typeof MARK } => ({
  mark: MARK,
  ...message,
});

const isMarked = (message: unknown): boolean =>
  typeof message === "object" && message !== null && (message as { readonly mark?: unknown }).mark === MARK;

export const isStart = (message: unknown): message is DeviceStart => isMarked(message);
export const isDeviceMessage = (message: unknown): message is DeviceMessage => isMarked(message);

/** The name of the lock that a device holds as long as it lives. */
export const lifeName = (run: string, rank: number): string => `${MARK} ${run} ${rank}`;
