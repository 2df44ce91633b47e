/** @file The script of every worker of the playground. */
import { createWork } from "../work.ts";
import { answerCalls } from "./answer.ts";

answerCalls(createWork);
