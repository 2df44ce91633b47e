/** @file `tidemark/sim`: differential equations inside of programs, and trajectories that are differentiated backwards. */
export { type Method, type OdeOptions, odeint, odeSolve, type Solution } from "./odeint.ts";
export { type ReversibleLeapfrogOptions, reversibleLeapfrog } from "./reversible.ts";
export type { Span, Times } from "./times.ts";
