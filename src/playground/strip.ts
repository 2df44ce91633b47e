/**
 * @file TypeScript to JavaScript, for the editor: types are removed and imports become calls of `require`; line numbers
 * are preserved. Only this file uses sucrase, which is bundled only into the playground.
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
