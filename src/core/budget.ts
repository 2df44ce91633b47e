/**
 * @file `tidemark/core/budget`: with it, `compile` of `tidemark/core` plans within budgets. `import "tidemark/core/budget"` puts the
 * planner of budgets beside the rest; `await import("tidemark/core/budget")` loads it when it is needed.
 */
import "../api/budgets.ts";
