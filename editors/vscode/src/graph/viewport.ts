// Which part of a drawing is seen, and how large: a point `p` of it stands at `p * scale + (x, y)` of the window.

import type { Box, Layout, Xy } from "./layout";

export interface Viewport extends Xy {
  readonly scale: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

const SMALLEST = 0.05;
const LARGEST = 4;

// Larger or smaller by a factor; what is at the point stays there.
export function zoomed(view: Viewport, factor: number, { x, y }: Xy): Viewport {
  const scale = Math.min(LARGEST, Math.max(SMALLEST, view.scale * factor));
  const by = scale / view.scale;
  return { scale, x: x - (x - view.x) * by, y: y - (y - view.y) * by };
}

export function moved(view: Viewport, { x, y }: Xy): Viewport {
  return { ...view, x: view.x + x, y: view.y + y };
}

export function centred(view: Viewport, box: Xy, window: Size): Viewport {
  return { ...view, x: window.width / 2 - box.x * view.scale, y: window.height / 2 - box.y * view.scale };
}

// All of the drawing, never larger than it is.
export function fitted(drawing: Size, window: Size): Viewport {
  const scale = Math.max(SMALLEST, Math.min(1, window.width / Math.max(1, drawing.width), window.height / Math.max(1, drawing.height)));
  return { scale, x: (window.width - drawing.width * scale) / 2, y: Math.max(0, (window.height - drawing.height * scale) / 2) };
}

// Whether a box is seen whole.
export function shows(view: Viewport, box: Box, window: Size): boolean {
  const [x, y] = [box.x * view.scale + view.x, box.y * view.scale + view.y];
  const [half, high] = [(box.width / 2) * view.scale, (box.height / 2) * view.scale];
  return x - half >= 0 && x + half <= window.width && y - high >= 0 && y + high <= window.height;
}

export type Direction = "up" | "down" | "left" | "right";

// The box that an arrow key goes to: along an edge up and down, to the nearest of the same layer left and right.
export function neighbour({ boxes, wires }: Layout, from: number, direction: Direction): number | undefined {
  const here = boxes.find((box) => box.id === from);
  if (here === undefined) {
    return undefined;
  }
  const near = (candidates: readonly Box[]): number | undefined => candidates.toSorted((one, other) => Math.abs(one.x - here.x) - Math.abs(other.x - here.x))[0]?.id;
  if (direction === "up" || direction === "down") {
    const ids = wires.flatMap((wire) => (direction === "up" && wire.to === from ? [wire.from] : direction === "down" && wire.from === from ? [wire.to] : []));
    return near(boxes.filter((box) => ids.includes(box.id)));
  }
  const side = direction === "left" ? -1 : 1;
  const beside = boxes.filter((box) => (box.x - here.x) * side > 0 && Math.abs(box.y - here.y) < (box.height + here.height) / 2);
  return near(beside);
}
