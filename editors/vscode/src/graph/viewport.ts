// The visible part of a drawing and its scale: a point `p` of the drawing is at `p * scale + (x, y)` of the window.

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

// Zooms by a factor, keeping the given point of the window in place.
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

// Returns the viewport that shows the whole drawing, at a scale of at most 1.
export function fitted(drawing: Size, window: Size): Viewport {
  const scale = Math.max(SMALLEST, Math.min(1, window.width / Math.max(1, drawing.width), window.height / Math.max(1, drawing.height)));
  return { scale, x: (window.width - drawing.width * scale) / 2, y: Math.max(0, (window.height - drawing.height * scale) / 2) };
}

// Whether a box is completely visible.
export function shows(view: Viewport, box: Box, window: Size): boolean {
  const [x, y] = [box.x * view.scale + view.x, box.y * view.scale + view.y];
  const [half, high] = [(box.width / 2) * view.scale, (box.height / 2) * view.scale];
  return x - half >= 0 && x + half <= window.width && y - high >= 0 && y + high <= window.height;
}

export type Direction = "up" | "down" | "left" | "right";

// Returns the box that an arrow key moves to: up and down along an edge, left and right to the nearest box of the layer.
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
