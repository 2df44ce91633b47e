/**
 * @file Generated names in C. A C file has fixed names (types and functions of the prelude, locals of a template, the C library)
 * and names that depend on the program or on a count. All of the latter are made here, and their form keeps them distinct:
 *
 *   local and parameter    word_number        i0_7, acc_12, s_3      nothing else in small letters ends so
 *   function, type         tide_word…           tide_kernel_4            nothing but these starts with tide_
 *
 * Invariant: for every word and number, no such name is a keyword, a type, a macro or a function of the library
 * (macros of its headers are in capitals or start with an underscore); and none of one kind is of the other, so a local
 * never hides a function that is called.
 */
import { invariant } from "../../base/invariant.ts";

/** The form of a word in a name; words are counters' names and literals of this folder. */
const WORD = /^[a-z][A-Za-z0-9_]*$/;
const FILE_PREFIX = "tide_";

/** Whether a name has the form of a local. */
export const isLocalName = (name: string): boolean => /^[a-z][A-Za-z0-9_]*_[0-9]+$/.test(name) && !isFileName(name);

/** Whether a name has the form of a function or type. */
export const isFileName = (name: string): boolean => name.startsWith(FILE_PREFIX);

/** The name of a local or a parameter; different for different numbers. */
export function localName(word: string, number: number): string {
  invariant(WORD.test(word) && !isFileName(word), () => `"${word}" cannot begin a local's name`);
  return `${word}_${number}`;
}

/** The name of a function or a type of the file; different for different words. */
export function fileName(word: string): string {
  invariant(WORD.test(word), () => `"${word}" cannot be a function's name`);
  return `${FILE_PREFIX}${word}`;
}
