/** @file Names and sizes of the models, for pages that do not load them. */

/** Of the transformer: texts a step, letters of each, width, blocks. */
export const [TEXTS, TIME, WIDTH, BLOCKS] = [8, 64, 64, 2] as const;

/** Of the convolutional network: pictures a step, their side. */
export const [PICTURES, SIDE] = [48, 16] as const;

export const CATALOG = {
  transformer: {
    name: "transformer",
    title: `Transformer of ${BLOCKS} blocks, ${WIDTH} wide, on ${TEXTS} × ${TIME} letters a step, Adam. It learns a text.`,
  },
  cnn: {
    name: "cnn",
    title: `Convolutional network of 7 layers on ${PICTURES} pictures of ${SIDE} × ${SIDE} a step, Adam. It classifies shapes.`,
  },
} as const;
