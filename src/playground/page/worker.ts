/** @file The script of every worker of the playground. The build wraps it, so that pages opened from files can read it too. */
import "../../api/budgets.ts";
import { createWork } from "../work.ts";
import { answerCalls } from "./answer.ts";

answerCalls(createWork);
