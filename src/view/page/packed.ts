/**
 * @file Explanations embedded in the page: those of a plan are decompressed when one of its values is first selected.
 */
import { storiesId } from "../html.ts";
import { type StoryTree, storyIn } from "../story-tree.ts";

async function unpacked(name: string): Promise<StoryTree> {
  const text = document.getElementById(storiesId(name))?.textContent ?? "";
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as StoryTree;
}

const trees = new Map<string, Promise<StoryTree>>();

export async function packedStory(asks: string, value: number): Promise<readonly string[]> {
  const [name = "", ...inside] = asks.split("/");
  const tree = trees.get(name) ?? unpacked(name);
  trees.set(name, tree);
  return storyIn(await tree, inside, value);
}
