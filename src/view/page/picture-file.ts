/**
 * @file The map as a picture file: title, sentence, the maps with their axes, and the legend, drawn as the page shows them
 * but in a size of its own, so that a picture taken on a phone is as legible as one from a large screen.
 *
 *   gpt
 *   25.3 MiB instead of 57.1: 2.3 times less, …
 *   ┌──────────────────────┐
 *   │ map (A)   │ map (B)  │
 *   └──────────────────────┘
 *   ■ persistent ■ input …
 */
import { KIND_LABELS, type ViewKind } from "../picture.ts";
import type { Surface } from "./canvas.ts";
import { button, h } from "./dom.ts";
import { kindsOf } from "./legend.ts";
import { createPainter } from "./map-drawing.ts";
import { kindColour, kindTexture } from "./palette.ts";
import { sentencesOf } from "./sentence.ts";
import type { State, Store } from "./store.ts";

/** In CSS pixels; a picture has twice as many of its own. */
const [WIDTH, MAP, EDGE, SCALE] = [1200, 560, 24, 2] as const;

const LETTERS = "system-ui, sans-serif";

/** Where text is written next. */
interface Pen {
  readonly context: CanvasRenderingContext2D;
  y: number;
}

/** Writes words in lines as wide as the picture. */
function write(pen: Pen, text: string, font: string, colour: string): void {
  const { context } = pen;
  context.font = font;
  context.fillStyle = colour;
  context.textAlign = "left";
  context.textBaseline = "top";
  const high = Number(/(\d+)px/.exec(font)?.[1] ?? 12) * 1.35;
  let line = "";
  const flush = (): void => {
    if (line !== "") context.fillText(line, EDGE, pen.y);
    if (line !== "") pen.y += high;
    line = "";
  };
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (context.measureText(longer).width > WIDTH - 2 * EDGE) flush();
    line = line === "" ? word : longer;
  }
  flush();
}

/** The maps side by side, below their names. */
function drawMaps(pen: Pen, state: State): void {
  const { sides, theme } = state;
  const wide = Math.floor((WIDTH - 2 * EDGE + 12) / sides.length) - 12;
  const top = pen.y + (sides.length > 1 ? 20 : 0);
  sides.forEach(({ entry }, side) => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [wide * SCALE, MAP * SCALE];
    const context = canvas.getContext("2d");
    if (!context) return;
    context.scale(SCALE, SCALE);
    const surface: Surface = { canvas, context, width: wide, height: MAP, scale: SCALE };
    createPainter(side, true)(surface, state, null);
    const left = EDGE + side * (wide + 12);
    pen.context.drawImage(canvas, left, top, wide, MAP);
    pen.context.font = `13px ${LETTERS}`;
    pen.context.fillStyle = theme.quiet;
    if (sides.length > 1) pen.context.fillText(`${"AB".charAt(side)}: ${entry.label}`, left, pen.y);
  });
  pen.y = top + MAP + 10;
}

function drawSwatch({ context, y }: Pen, x: number, kind: ViewKind, dark: boolean): void {
  context.fillStyle = kindColour(kind, dark);
  context.fillRect(x, y, 14, 14);
  context.strokeStyle = "#333";
  context.lineWidth = 1;
  context.setLineDash(kindTexture(kind) === "dots" ? [1, 3] : []);
  const lines = { plain: [], stripes: [0, 6, 12], dots: [3, 8, 13] }[kindTexture(kind)];
  for (const at of lines) {
    context.beginPath();
    if (kindTexture(kind) === "stripes") {
      context.moveTo(x + Math.max(0, at - 12), y + Math.min(14, at + 2));
      context.lineTo(x + Math.min(14, at + 2), y + Math.max(0, at - 12));
    } else {
      context.moveTo(x + 2, y + at - 0.5);
      context.lineTo(x + 14, y + at - 0.5);
    }
    context.stroke();
  }
  context.setLineDash([]);
}

function drawKinds(pen: Pen, state: State): void {
  const { context } = pen;
  context.font = `13px ${LETTERS}`;
  context.textBaseline = "top";
  let x: number = EDGE;
  for (const kind of kindsOf(state)) {
    const wide = 20 + context.measureText(KIND_LABELS[kind]).width + 18;
    if (x + wide > WIDTH - EDGE) [x, pen.y] = [EDGE, pen.y + 20];
    drawSwatch(pen, x, kind, state.theme.dark);
    context.fillStyle = state.theme.quiet;
    context.fillText(KIND_LABELS[kind], x + 20, pen.y);
    x += wide;
  }
  pen.y += 20;
}

function paint(context: CanvasRenderingContext2D, state: State): number {
  const { theme, title } = state;
  const { main, rest } = sentencesOf(state);
  const pen: Pen = { context, y: EDGE };
  write(pen, title, `600 15px ${LETTERS}`, theme.quiet);
  write(pen, main, `600 22px ${LETTERS}`, theme.text);
  write(pen, rest, `14px ${LETTERS}`, theme.quiet);
  pen.y += 10;
  drawMaps(pen, state);
  drawKinds(pen, state);
  return pen.y + EDGE - 8;
}

/** The picture of a state as a PNG file; null where the browser makes none. */
export function pictureFile(state: State): Promise<Blob | null> {
  const sizing = document.createElement("canvas").getContext("2d");
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  if (!context || !sizing) return Promise.resolve(null);
  // Once to know how high it is, once on a canvas of that height.
  const height = Math.ceil(paint(sizing, state));
  [canvas.width, canvas.height] = [WIDTH * SCALE, height * SCALE];
  context.scale(SCALE, SCALE);
  context.fillStyle = state.theme.dark ? "#14181f" : "#ffffff";
  context.fillRect(0, 0, WIDTH, height);
  paint(context, state);
  return new Promise((resolve) => {
    canvas.toBlob(resolve, "image/png");
  });
}

/** A button that saves the picture. */
export function pictureButton(store: Store): HTMLButtonElement {
  const save = async (): Promise<void> => {
    const file = await pictureFile(store.get());
    if (!file) return store.set({ message: "This browser makes no pictures of drawings." });
    const href = URL.createObjectURL(file);
    const download = `${store.get().title.replaceAll(/[^\w.-]+/g, "-") || "plan"}.png`;
    h("a", { href, download }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10_000);
    return undefined;
  };
  const title = "saves the map as a PNG file, with its legend and the result";
  return button("picture", () => void save(), { id: "picture", title });
}
