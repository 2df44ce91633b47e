/** @file The script of the worker of all figures but those of the reader's own function. */
import { answerCalls } from "../../../src/playground/page/answer.ts";
import { createCalls } from "./calls.ts";

answerCalls(createCalls);
