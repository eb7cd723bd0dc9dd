// The script of a graph's page: draws the graph, pans and zooms, and reports the node whose source the user wants to see.

import type { Graph } from "../graph";
import { layout, sameShape, type Layout } from "../layout";
import type { FromPage, ToPage } from "../messages";
import { svg } from "../svg";
import { centred, fitted, moved, neighbour, shows, zoomed, type Direction, type Size, type Viewport } from "../viewport";

declare function acquireVsCodeApi(): { postMessage(message: FromPage): void };

const editor = acquireVsCodeApi();
const element = (id: string): HTMLElement => document.getElementById(id) ?? document.body;
const drawing = element("drawing");

const STEP = 1.25;
// The distance in pixels after which a press is a drag instead of a click.
const DRAG = 4;
const ARROWS: Record<string, Direction> = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };

interface Drawn {
  readonly graph: Graph;
  readonly layout: Layout;
}

let drawn: Drawn | undefined;
let view: Viewport = { x: 0, y: 0, scale: 1 };
let selected: number | undefined;

function size(): Size {
  return { width: drawing.clientWidth, height: drawing.clientHeight };
}

function look(at: Viewport): void {
  view = at;
  drawing.querySelector("#view")?.setAttribute("transform", `translate(${at.x} ${at.y}) scale(${at.scale})`);
}

function draw(graph: Graph): void {
  const before = drawn;
  const kept = before !== undefined && sameShape(before.graph, graph);
  const places = kept ? before.layout : layout(graph);
  drawn = { graph, layout: places };
  const focused = document.activeElement?.closest(".node") !== null && document.activeElement !== document.body;
  drawing.innerHTML = svg(graph, places);
  element("title").textContent = graph.function;
  const count = graph.nodes.length;
  element("note").textContent = graph.whole ? "" : `${count} nodes near the cursor; ${graph.hidden} more are hidden`;
  // A new function is shown from its top; an edited one keeps its position.
  look(before?.graph.function === graph.function ? view : first(places));
  if (focused) {
    node(selected)?.focus();
  }
}

// Returns the viewport of the whole graph if it is readable at that scale, otherwise of its top.
function first(places: Layout): Viewport {
  const all = fitted(places, size());
  return all.scale >= 0.5 ? all : { scale: 0.8, x: size().width / 2 - (places.width / 2) * 0.8, y: 0 };
}

function node(id: number | undefined): SVGGElement | null {
  return id === undefined ? null : drawing.querySelector<SVGGElement>(`.node[data-id="${id}"]`);
}

function select(id: number | undefined, focus = false): void {
  selected = id;
  for (const old of drawing.querySelectorAll(".selected, .near, [tabindex='0']")) {
    old.classList.remove("selected", "near");
    old.removeAttribute("aria-current");
    if (old.matches(".node")) {
      old.setAttribute("tabindex", "-1");
    }
  }
  const target = node(id);
  // The Tab key moves to one node; the arrow keys move to the others.
  (target ?? drawing.querySelector(".node"))?.setAttribute("tabindex", "0");
  if (target === null) {
    return;
  }
  target.classList.add("selected");
  target.setAttribute("aria-current", "true");
  drawing.querySelectorAll(`.edge[data-from="${id}"], .edge[data-to="${id}"]`).forEach((edge) => edge.classList.add("near"));
  const box = drawn?.layout.boxes.find((box) => box.id === id);
  if (box !== undefined && !shows(view, box, size())) {
    look(centred(view, box, size()));
  }
  if (focus) {
    target.focus({ preventScroll: true });
  }
}

function open(id: number): void {
  select(id);
  editor.postMessage({ kind: "open", id });
}

function zoom(factor: number, at = { x: size().width / 2, y: size().height / 2 }): void {
  look(zoomed(view, factor, at));
}

function fit(): void {
  if (drawn !== undefined) {
    look(fitted(drawn.layout, size()));
  }
}

function idOf(target: EventTarget | null): number | undefined {
  const found = target instanceof Element ? target.closest(".node")?.getAttribute("data-id") : undefined;
  return found === undefined || found === null ? undefined : Number(found);
}

function pressed(event: KeyboardEvent): void {
  // Keys with modifiers are handled by the editor.
  if (event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  const here = idOf(event.target) ?? selected;
  const arrow = ARROWS[event.key];
  const button = event.target instanceof HTMLButtonElement;
  if (arrow !== undefined && drawn !== undefined && here !== undefined) {
    const next = neighbour(drawn.layout, here, arrow);
    if (next !== undefined) {
      select(next, true);
    }
  } else if ((event.key === "Enter" || event.key === " ") && here !== undefined && !button) {
    open(here);
  } else if (event.key === "+" || event.key === "=") {
    zoom(STEP);
  } else if (event.key === "-") {
    zoom(1 / STEP);
  } else if (event.key === "0") {
    fit();
  } else {
    return;
  }
  event.preventDefault();
}

function wheel(event: WheelEvent): void {
  event.preventDefault();
  if (event.shiftKey) {
    look(moved(view, { x: -event.deltaY || -event.deltaX, y: 0 }));
  } else {
    const box = drawing.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), { x: event.clientX - box.left, y: event.clientY - box.top });
  }
}

// Handles a press: a drag pans the drawing, and a press without movement is a click.
function press(start: PointerEvent): void {
  if (start.button !== 0) {
    return;
  }
  const from = view;
  const id = idOf(start.target);
  let dragged = false;
  const drag = (event: PointerEvent): void => {
    const by = { x: event.clientX - start.clientX, y: event.clientY - start.clientY };
    dragged ||= Math.hypot(by.x, by.y) > DRAG;
    if (dragged) {
      drawing.classList.add("dragged");
      look(moved(from, by));
    }
  };
  const end = (): void => {
    drawing.classList.remove("dragged");
    window.removeEventListener("pointermove", drag);
    if (!dragged && id !== undefined) {
      open(id);
    }
  };
  window.addEventListener("pointermove", drag);
  window.addEventListener("pointerup", end, { once: true });
}

function hear({ data }: MessageEvent<ToPage>): void {
  switch (data.kind) {
    case "graph":
      draw(data.graph);
      select(data.selected);
      break;
    case "select":
      if (data.id !== selected) {
        select(data.id);
      }
      break;
    case "message":
      drawn = undefined;
      drawing.textContent = data.text;
      element("title").textContent = "";
      element("note").textContent = "";
  }
}

window.addEventListener("message", hear);
window.addEventListener("keydown", pressed);
drawing.addEventListener("wheel", wheel, { passive: false });
drawing.addEventListener("pointerdown", press);
element("in").addEventListener("click", () => zoom(STEP));
element("out").addEventListener("click", () => zoom(1 / STEP));
element("fit").addEventListener("click", fit);
editor.postMessage({ kind: "ready" });
