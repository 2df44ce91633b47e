/** @file Globals that every place Tidemark runs in provides, for a core that is type-checked without DOM and Node. */
declare const performance: { now(): number };
