// The canvas of the Graph view: pointer, wheel, touch and keyboard.
import { useEffect, useRef } from "preact/hooks";
import { said, selection, theme } from "../state";
import { Drawing } from "./drawing";
import { picked } from "./picking";
import { scene } from "./scene";

const KEYS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** The node nearest to another in one direction, for those who use the keyboard. */
function towards(from: string, [dx, dy]: [number, number]): string | null {
  const start = scene.dots.get(from);
  if (!start) return null;
  let best: string | null = null;
  let least = Infinity;
  for (const [handle, dot] of scene.dots) {
    if (handle === from) continue;
    const [x, y] = [dot.x - start.x, dot.y - start.y];
    const ahead = x * dx + y * dy;
    if (ahead <= 0) continue;
    const aside = Math.abs(x * dy) + Math.abs(y * dx);
    if (aside > ahead * 2) continue;
    const far = ahead + aside * 1.5;
    if (far < least) [best, least] = [handle, far];
  }
  return best;
}

export function GraphCanvas() {
  const canvas = useRef<HTMLCanvasElement>(null);

  useEffect(() => {
    const element = canvas.current!;
    const drawing = new Drawing(element, scene);
    // For tests and for the curious; it reaches nothing that the page does not show.
    (window as unknown as { adjoinDrawing: Drawing }).adjoinDrawing = drawing;
    let hovered: string | null = null;
    let frame = 0;
    let isMoved = false;
    let isSought = false;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

    const draw = () => {
      frame = 0;
      if (!isMoved) drawing.fit();
      else if (isSought) seek();
      drawing.draw({ selected: selection.value?.handle ?? null, hovered, picked: picked.value });
      element.dataset.settled = String(scene.settled.value);
      element.dataset.nodes = String(scene.dots.size);
      element.dataset.edges = String(scene.lines.size);
    };
    /** What is selected is brought into sight, until nodes have come to rest or somebody moves the drawing. */
    const seek = () => {
      const dot = scene.dots.get(selection.value?.handle ?? "");
      if (dot) drawing.seek(dot);
      if (scene.settled.value) isSought = false;
    };
    const redraw = () => {
      if (!frame) frame = requestAnimationFrame(draw);
    };
    scene.onMoved = () => {
      if (!still || scene.settled.value) redraw();
    };
    const expand = (handle: string) => void scene.expand(handle).catch(() => undefined);
    const choose = (handle: string) => {
      const dot = scene.dots.get(handle);
      if (selection.value?.handle === handle) expand(handle);
      else selection.set({ kind: "node", handle });
      if (dot) said.set(`${dot.info.class} ${dot.info.title}, ${dot.degree} edges drawn`);
    };

    const size = new ResizeObserver(() => {
      drawing.resize();
      draw();
    });
    size.observe(element);

    // --- pointer: drag the ground or a node, click, pinch ---
    const pointers = new Map<number, [number, number]>();
    let grabbed: string | null = null;
    let begun: [number, number] = [0, 0];
    let isDragged = false;
    let spread = 0;
    const place = (event: PointerEvent | WheelEvent): [number, number] => {
      const box = element.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const zoomAt = (x: number, y: number, factor: number) => {
      const before = drawing.toScene(x, y);
      drawing.camera.zoom = Math.max(0.03, Math.min(6, drawing.camera.zoom * factor));
      const after = drawing.toScene(x, y);
      drawing.camera.x += before[0] - after[0];
      drawing.camera.y += before[1] - after[1];
      isMoved = true;
      isSought = false;
      redraw();
    };
    const down = (event: PointerEvent) => {
      element.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, place(event));
      begun = place(event);
      isDragged = false;
      grabbed = pointers.size === 1 ? drawing.dotAt(...begun) : null;
      spread = 0;
    };
    const move = (event: PointerEvent) => {
      const now = place(event);
      const before = pointers.get(event.pointerId);
      if (!before) {
        const over = drawing.dotAt(...now) ?? drawing.lineAt(...now);
        element.style.cursor = over ? "pointer" : "grab";
        if (over !== hovered) {
          hovered = over;
          redraw();
        }
        return;
      }
      pointers.set(event.pointerId, now);
      if (pointers.size === 2) {
        const [one, other] = [...pointers.values()] as [[number, number], [number, number]];
        const far = Math.hypot(one[0] - other[0], one[1] - other[1]);
        if (spread) zoomAt((one[0] + other[0]) / 2, (one[1] + other[1]) / 2, far / spread);
        spread = far;
        isDragged = true;
        return;
      }
      if (!isDragged && Math.hypot(now[0] - begun[0], now[1] - begun[1]) < 5) return;
      isDragged = true;
      isMoved = true;
      isSought = false;
      if (grabbed) scene.drag(grabbed, ...drawing.toScene(...now));
      else {
        drawing.camera.x -= (now[0] - before[0]) / drawing.camera.zoom;
        drawing.camera.y -= (now[1] - before[1]) / drawing.camera.zoom;
        redraw();
      }
    };
    const up = (event: PointerEvent) => {
      pointers.delete(event.pointerId);
      if (isDragged || event.type === "pointercancel") return;
      if (grabbed) return choose(grabbed);
      const line = drawing.lineAt(...place(event));
      if (line && !scene.lines.get(line)?.info.child) selection.set({ kind: "edge", handle: line });
      else selection.set(null);
    };
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      zoomAt(...place(event), Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)));
    };
    const leave = () => {
      if (hovered) {
        hovered = null;
        redraw();
      }
    };
    const key = (event: KeyboardEvent) => {
      const at = selection.value?.kind === "node" ? selection.value.handle : null;
      const way = KEYS[event.key];
      if (way) {
        const next = at && scene.dots.has(at) ? towards(at, way) : [...scene.dots.keys()][0];
        if (next) choose(next);
      } else if (event.key === "Enter" && at) expand(at);
      else if (event.key === "+" || event.key === "=") zoomAt(drawing.width / 2, drawing.height / 2, 1.25);
      else if (event.key === "-") zoomAt(drawing.width / 2, drawing.height / 2, 0.8);
      else if (event.key === "0") fit();
      else if (event.key === "p" && at) picked.set(at);
      else if (event.key === "Escape") selection.set(null);
      else return;
      event.preventDefault();
    };
    const fit = () => {
      isMoved = false;
      redraw();
    };
    const zoom = (event: Event) => zoomAt(drawing.width / 2, drawing.height / 2, (event as CustomEvent<number>).detail);
    const listening: [string, EventListener][] = [
      ["pointerdown", down as EventListener],
      ["pointermove", move as EventListener],
      ["pointerup", up as EventListener],
      ["pointercancel", up as EventListener],
      ["pointerleave", leave],
      ["keydown", key as EventListener],
      ["adjoin-fit", fit],
      ["adjoin-zoom", zoom],
    ];
    for (const [name, listener] of listening) element.addEventListener(name, listener);
    element.addEventListener("wheel", wheel, { passive: false });
    const following = [
      selection.follow(() => {
        isSought = true;
        redraw();
      }),
      picked.follow(redraw),
      scene.changed.follow(redraw),
      scene.marked.follow(redraw),
      theme.follow(() => {
        // The style sheet answers after the attribute has changed.
        requestAnimationFrame(() => {
          drawing.readPalette();
          draw();
        });
      }),
    ];
    return () => {
      size.disconnect();
      cancelAnimationFrame(frame);
      for (const stop of following) stop();
      scene.onMoved = () => undefined;
    };
  }, []);

  return (
    <canvas
      ref={canvas}
      id="canvas"
      tabIndex={0}
      role="application"
      aria-label="The graph. Arrow keys move between nodes, Enter expands one, plus and minus zoom, 0 shows all, P picks a node for a path."
    />
  );
}

export function tellCanvas(name: "adjoin-fit" | "adjoin-zoom", detail?: number): void {
  document.getElementById("canvas")?.dispatchEvent(new CustomEvent(name, { detail }));
}
