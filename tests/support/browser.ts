/**
 * @file A real browser for tests: Debian's Chromium, driven by playwright-core. A person without one is told loudly and
 * the tests are skipped; on a build machine (CI=true) that is a failure.
 */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";

/** CHROMIUM, or the first of the usual names on the path. */
export function browserPath(env: NodeJS.ProcessEnv = process.env): string | null {
  if (env.CHROMIUM) return env.CHROMIUM;
  const names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
  const folders = (env.PATH ?? "").split(delimiter);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path)) ?? null;
}

export const NO_BROWSER =
  "no Chromium found: apt-get install chromium, or set CHROMIUM to one. Tests of the page did not run.";

/** `gpu`: how it draws and computes; default: without a GPU. */
export function launch(path: string, gpu: readonly string[] = ["--disable-gpu"]): Promise<Browser> {
  // Containers have neither user namespaces for the sandbox nor a large /dev/shm; what is opened is our own page.
  return chromium.launch({ executablePath: path, args: ["--no-sandbox", "--disable-dev-shm-usage", ...gpu] });
}

/**
 * How far two screenshots are apart, by blocks of 20 × 20 pixels: letters that another font draws elsewhere hardly count, a
 * rectangle that is missing does. Pictures of different sizes are as far apart as can be.
 */
export async function pictureDistance(page: Page, a: Buffer, b: Buffer): Promise<{ mean: number; most: number }> {
  const urls = [a, b].map((png) => `data:image/png;base64,${png.toString("base64")}`);
  const code = `(async (urls) => {
    const blocks = await Promise.all(urls.map(async (url) => {
      const image = new Image();
      image.src = url;
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [Math.ceil(image.width / 20), Math.ceil(image.height / 20)];
      const context = canvas.getContext("2d");
      context.imageSmoothingQuality = "high";
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      return { size: [image.width, image.height].join(), data: context.getImageData(0, 0, canvas.width, canvas.height).data };
    }));
    if (blocks[0].size !== blocks[1].size) return { mean: 255, most: 255 };
    const apart = Array.from(blocks[0].data, (value, i) => Math.abs(value - blocks[1].data[i]));
    return { mean: apart.reduce((sum, d) => sum + d, 0) / apart.length, most: Math.max(...apart) };
  })(${JSON.stringify(urls)})`;
  return page.evaluate<{ mean: number; most: number }>(code);
}
