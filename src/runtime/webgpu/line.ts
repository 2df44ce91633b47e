/**
 * @file The order of what happens on a device. Each task starts when the one before is done, maybe after waiting for something (for
 * pipelines that are compiled, for a word that is read back); the caller does not wait. After a failure nothing more is done, and
 * every later read says what it was.
 *
 *   host      write  run  run  read ┐ one call after the other, none waits
 *   line      write · run ⋯ · run ⋯ · copy to where the host reads
 *   device            └ work ┘ └ work ┘ └→ promise
 */
export class DeviceLine {
  #tail: Promise<void> = Promise.resolve();
  #failure: unknown = null;

  /** Everything from now on fails for this reason; the first one stays. */
  fail(reason: unknown): void {
    this.#failure ??= reason;
  }

  /** What went wrong so far. */
  get failure(): unknown {
    return this.#failure;
  }

  submit(task: () => void | Promise<void>): void {
    this.#tail = this.#tail.then(async () => {
      if (this.#failure !== null) return;
      try {
        await task();
      } catch (error) {
        this.fail(error);
      }
    });
  }

  /** The same for a task with a result, which is waited for outside of the line. */
  ask<T>(task: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#tail = this.#tail.then(() => {
        if (this.#failure !== null) reject(this.#failure);
        // a device that is lost meanwhile says so before the result does
        else task().then(resolve, (error: unknown) => reject(this.#failure ?? error));
      });
    });
  }
}
