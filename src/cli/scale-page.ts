/** @file The page of `tidemark scale --html`. */
import { type DevicesData, devicesHtml } from "../view/devices-page.ts";
import type { Io } from "./command.ts";
import { writeText } from "./files.ts";

export function writePage(file: string, data: DevicesData, io: Io): void {
  writeText(file, devicesHtml(data));
  io.err(`${file}: open it in a browser\n`);
}
