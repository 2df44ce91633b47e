/** @file The script of the workers that run and plan the reader's text: the playground's, without its models. */
import { answerCalls } from "../../../src/playground/page/answer.ts";
import { studying } from "../../../src/playground/studying.ts";

answerCalls(studying);
