/** @file Makes budgets and families of shapes work: an effect of importing `tidemark` or `tidemark/core/budget` (docs/decisions/0035-core-entry.md). */
import { budgetPlanner } from "../compiler/assemble.ts";
import { installPart } from "./host.ts";
import { shapeFamilies } from "./shape-family.ts";

installPart("budgets", { planner: budgetPlanner, families: shapeFamilies });
