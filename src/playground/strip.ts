/**
 * @file TypeScript to JavaScript, for the editor: types are taken out and imports become calls of `require`; lines stay
 * where they are. The one file that knows sucrase, which is bundled into the playground and into nothing else.
 */
import { transform } from "sucrase";
import type { Complaint } from "./complaint.ts";

export function stripTypes(text: string): { readonly code: string } | Complaint {
  try {
    return { code: transform(text, { transforms: ["typescript", "imports"], disableESTransforms: true }).code };
  } catch (error) {
    const { message, loc } = error as Error & { readonly loc?: { readonly line: number } };
    return { message: `SyntaxError: ${message.replace(/^Error transforming .*?: /, "")}`, line: loc?.line ?? null };
  }
}
