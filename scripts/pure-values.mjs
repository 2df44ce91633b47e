/**
 * @file Tells users' bundlers that the values of modules are made without effects, so that a program is bundled with what it uses
 * and not with all operations. That it is true is a rule of the sources: no module but the listed ones does anything when it is
 * imported (tests/architecture.test.ts). Bundlers cannot know it: a call may do anything.
 *
 *   const add = elementwise("add", {…})         const add = /* @__PURE__ *\/ elementwise("add", {…})
 *   const ROWS = { ...FLOAT, lanes: f() }       const ROWS = /* @__PURE__ *\/ (() => ({ ...FLOAT, lanes: f() }))()
 *   __name(sum$1, "sum");                       /* @__PURE__ *\/ __name(sum$1, "sum");
 *
 * The names of functions, the last line, matter to people who look at stacks of the package as it is.
 */
import { RolldownMagicString } from "rolldown";
import { parseAst } from "rolldown/parseAst";

const PURE = "/* @__PURE__ */ ";
/** What may have an effect, for all that a bundler knows. */
const OPAQUE =
  /^(Call|New|Member|TaggedTemplate|Binary|Unary|Import|Await)Expression$|^(SpreadElement|TemplateLiteral)$/;
const FUNCTION = /^(FunctionExpression|ArrowFunctionExpression|ClassExpression)$/;

/** Whether evaluating a node may have an effect. */
function isOpaque(node) {
  if (Array.isArray(node)) return node.some(isOpaque);
  if (node === null || typeof node !== "object" || FUNCTION.test(node.type)) return false;
  return OPAQUE.test(node.type) || Object.values(node).some(isOpaque);
}

const isCall = ({ type }) => type === "CallExpression" || type === "NewExpression";

function markValue(init, code) {
  if (!isOpaque(init)) return;
  if (isCall(init) && init.callee.type === "Identifier" && !isOpaque(init.arguments)) {
    code.appendLeft(init.start, PURE);
    return;
  }
  code.appendLeft(init.start, `${PURE}(() => (`);
  code.appendRight(init.end, "))()");
}

/** Waiting is an effect, and cannot be inside of a function. */
const waits = (node) =>
  node !== null && typeof node === "object" && (node.type === "AwaitExpression" || Object.values(node).some(waits));

function markStatement(statement, code) {
  if (statement.type === "VariableDeclaration") {
    for (const { init } of statement.declarations) if (init && !waits(init)) markValue(init, code);
  }
  const call = statement.type === "ExpressionStatement" ? statement.expression : null;
  if (call?.type === "CallExpression" && call.callee.name === "__name") code.appendLeft(statement.start, PURE);
}

export const pureValues = () => ({
  name: "pure-values",
  renderChunk(text, chunk) {
    const code = new RolldownMagicString(text);
    for (const statement of parseAst(text).body) markStatement(statement, code);
    const map = code.generateMap({ source: chunk.fileName, hires: "boundary" });
    return { code: code.toString(), map: map.toString() };
  },
});
