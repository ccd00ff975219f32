// Draws a scene on a canvas: edges, nodes, and as many labels as fit without touching each other.
import { colourOf } from "../colours";
import { cut, shortened } from "../format";
import { type Dot, type Line, radiusOf, type Scene } from "./scene";

export interface Camera {
  x: number;
  y: number;
  zoom: number;
}

export interface Emphasis {
  selected: string | null;
  hovered: string | null;
  picked: string | null;
}

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

interface Palette {
  background: string;
  text: string;
  muted: string;
  line: string;
  accent: string;
}

const FONT = 12;
const CELL = 64;
/** The room that is left for names at either side, when everything is in sight. */
const NAMES = 24;
/** With more edges than these, only those that matter have their names written. */
const DENSE = 250;
/** With more nodes than these, those with the most edges have names even where smaller nodes are in the way. */
const CROWDED = 150;
const LANDMARKS = 10;
/** How far the ring around a node that is selected or marked reaches. */
const RING = 6;

function overlap(one: Box, other: Box): boolean {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

/** Which parts of the canvas have text already. */
class Taken {
  private cells = new Map<string, Box[]>();
  readonly boxes: Box[] = [];

  /** Takes a part if nothing has it yet. */
  take(box: Box): boolean {
    for (const key of this.keys(box))
      for (const other of this.cells.get(key) ?? []) if (overlap(box, other)) return false;
    this.keep(box);
    this.boxes.push(box);
    return true;
  }

  /** Keeps a part free of text. */
  keep(box: Box): void {
    for (const key of this.keys(box)) {
      const found = this.cells.get(key);
      if (found) found.push(box);
      else this.cells.set(key, [box]);
    }
  }

  private keys(box: Box): string[] {
    const keys = [];
    for (let x = Math.floor(box.left / CELL); x <= Math.floor(box.right / CELL); x++)
      for (let y = Math.floor(box.top / CELL); y <= Math.floor(box.bottom / CELL); y++) keys.push(`${x},${y}`);
    return keys;
  }
}

export class Drawing {
  camera: Camera = { x: 0, y: 0, zoom: 1 };
  /** The labels of the last frame, for tests: none may overlap another. */
  labels: Box[] = [];
  /** How many of the nodes with the most edges had their names in the last frame, for tests too. */
  landmarks = 0;
  private context: CanvasRenderingContext2D;
  private palette: Palette = { background: "", text: "", muted: "", line: "", accent: "" };
  private widths = new Map<string, number>();
  /** What controls cover in this frame. */
  private covered: Box[] = [];

  constructor(
    readonly canvas: HTMLCanvasElement,
    private scene: Scene,
  ) {
    this.context = canvas.getContext("2d")!;
    this.readPalette();
  }

  readPalette(): void {
    const style = getComputedStyle(this.canvas);
    const of = (name: string) => style.getPropertyValue(name).trim();
    this.palette = {
      background: of("--canvas"),
      text: of("--text"),
      muted: of("--muted"),
      line: of("--edge"),
      accent: of("--accent"),
    };
  }

  get width(): number {
    return this.canvas.clientWidth;
  }

  get height(): number {
    return this.canvas.clientHeight;
  }

  resize(): void {
    const scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
  }

  toScreen(x: number, y: number): [number, number] {
    const { camera } = this;
    return [(x - camera.x) * camera.zoom + this.width / 2, (y - camera.y) * camera.zoom + this.height / 2];
  }

  toScene(x: number, y: number): [number, number] {
    const { camera } = this;
    return [(x - this.width / 2) / camera.zoom + camera.x, (y - this.height / 2) / camera.zoom + camera.y];
  }

  /** What controls cover, and from which side. */
  private covers(): [string, Box][] {
    const whole = this.canvas.getBoundingClientRect();
    return [...(this.canvas.parentElement?.querySelectorAll<HTMLElement>("[data-covers]") ?? [])].map((cover) => {
      const { left, top, right, bottom } = cover.getBoundingClientRect();
      const box = { left: left - whole.left, top: top - whole.top, right: right - whole.left, bottom: bottom - whole.top };
      return [cover.dataset.covers!, box];
    });
  }

  /** The part of the canvas that no control covers. A drawing is round, so what covers only a corner is left out. */
  private free(): Box {
    const found = { left: 12, top: 40, right: this.width - 12, bottom: this.height - 40 };
    for (const [side, box] of this.covers()) {
      if (side !== "right" && box.right - box.left < this.width / 2) continue;
      if (side === "top") found.top = Math.max(found.top, box.bottom + 12);
      else if (side === "bottom") found.bottom = Math.min(found.bottom, box.top - 12);
      else found.right = Math.min(found.right, box.left - 12);
    }
    return found;
  }

  /** Moves the camera as little as it takes to have a node where no control covers it. */
  seek(dot: Dot): void {
    const free = this.free();
    const [x, y] = this.toScreen(dot.x, dot.y);
    const [across, down] = [Math.min(80, (free.right - free.left) / 3), Math.min(40, (free.bottom - free.top) / 3)];
    const into = (at: number, least: number, most: number) => Math.max(least, Math.min(most, at)) - at;
    this.camera.x -= into(x, free.left + across, free.right - across) / this.camera.zoom;
    this.camera.y -= into(y, free.top + down, free.bottom - down) / this.camera.zoom;
  }

  /** Everything in sight, with some room for labels. */
  fit(): void {
    const dots = [...this.scene.dots.values()];
    if (!dots.length || !this.width || !this.height) return;
    const xs = dots.map((dot) => dot.x);
    const ys = dots.map((dot) => dot.y);
    const [left, right] = [Math.min(...xs), Math.max(...xs)];
    const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
    const free = this.free();
    const across = Math.max(free.right - free.left - 2 * NAMES, 80) / (right - left + 30);
    const down = Math.max(free.bottom - free.top - 16, 60) / (bottom - top + 30);
    const zoom = Math.min(1.7, across, down);
    this.camera = {
      x: (left + right) / 2 - ((free.left + free.right - this.width) / 2) / zoom,
      y: (top + bottom) / 2 - ((free.top + free.bottom - this.height) / 2) / zoom,
      zoom,
    };
  }

  /** The node at a place of the screen. */
  dotAt(x: number, y: number): string | null {
    let best: string | null = null;
    let nearest = Infinity;
    for (const [handle, dot] of this.scene.dots) {
      const [left, top] = this.toScreen(dot.x, dot.y);
      const far = Math.hypot(left - x, top - y);
      if (far <= this.radius(dot) + 6 && far < nearest) {
        best = handle;
        nearest = far;
      }
    }
    return best;
  }

  lineAt(x: number, y: number): string | null {
    for (const [handle, line] of this.scene.lines) {
      const curve = this.curve(line);
      if (!curve) continue;
      let before: [number, number] = [curve.x1, curve.y1];
      for (let step = 1; step <= 8; step++) {
        const now = along(curve, step / 8);
        if (distance(x, y, before, now) < 5) return handle;
        before = now;
      }
    }
    return null;
  }

  private radius(dot: Dot): number {
    return radiusOf(dot) * Math.min(1.15, Math.max(0.28, Math.sqrt(this.camera.zoom)));
  }

  draw(emphasis: Emphasis): void {
    const { context } = this;
    const scale = devicePixelRatio || 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    const marked = this.scene.marked.value;
    const focus = emphasis.hovered ?? emphasis.selected;
    const near = this.near(focus);
    this.drawLines(marked, focus);
    this.drawDots(emphasis, marked, near);
    this.drawLabels(emphasis, marked, near);
  }

  private near(focus: string | null): Set<string> {
    const found = new Set<string>();
    if (focus && this.scene.dots.has(focus))
      for (const line of this.scene.lines.values()) {
        if (line.info.source === focus) found.add(line.info.target);
        if (line.info.target === focus) found.add(line.info.source);
      }
    return found;
  }

  private drawLines(marked: ReadonlySet<string>, focus: string | null): void {
    const { context, palette } = this;
    const plain: Line[] = [];
    const near: Line[] = [];
    const strong: Line[] = [];
    for (const [handle, line] of this.scene.lines) {
      if (marked.has(handle) || handle === focus) strong.push(line);
      else if (line.info.source === focus || line.info.target === focus) near.push(line);
      else plain.push(line);
    }
    this.strokeLines(plain, this.camera.zoom < 0.5 ? 0.7 : 1.1, palette.line);
    this.strokeLines(near, 1.6, palette.muted);
    this.strokeLines(strong, 3, palette.accent);
    context.setLineDash([]);
  }

  private strokeLines(lines: Line[], width: number, colour: string): void {
    const { context } = this;
    context.lineWidth = width;
    context.strokeStyle = context.fillStyle = colour;
    const hasTips = this.camera.zoom >= 0.35;
    for (const line of lines) {
      const curve = this.curve(line);
      if (!curve || !this.isInSight(curve)) continue;
      // One by one: a path of many lines that cross each other takes longer, because each crossing is computed.
      context.setLineDash(line.info.child ? [4, 3] : []);
      context.beginPath();
      context.moveTo(curve.x1, curve.y1);
      if (line.bend) context.quadraticCurveTo(curve.cx, curve.cy, curve.x2, curve.y2);
      else context.lineTo(curve.x2, curve.y2);
      context.stroke();
      if (hasTips && !line.info.symmetric) this.fillTip(curve, 5 + width);
    }
  }

  /** The head of an arrow at the end of a line. */
  private fillTip({ x2, y2, cx, cy, end }: Curve, size: number): void {
    const { context } = this;
    const angle = Math.atan2(y2 - cy, x2 - cx);
    const [x, y] = [x2 - Math.cos(angle) * (end + 2), y2 - Math.sin(angle) * (end + 2)];
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x - size * Math.cos(angle - 0.45), y - size * Math.sin(angle - 0.45));
    context.lineTo(x - size * Math.cos(angle + 0.45), y - size * Math.sin(angle + 0.45));
    context.fill();
  }

  private isInSight(curve: Curve): boolean {
    const [left, right] = [Math.min(curve.x1, curve.x2, curve.cx), Math.max(curve.x1, curve.x2, curve.cx)];
    const [top, bottom] = [Math.min(curve.y1, curve.y2, curve.cy), Math.max(curve.y1, curve.y2, curve.cy)];
    return right > 0 && bottom > 0 && left < this.width && top < this.height;
  }

  private curve(line: Line): Curve | null {
    const one = this.scene.dots.get(line.info.source);
    const other = this.scene.dots.get(line.info.target);
    if (!one || !other) return null;
    const [x1, y1] = this.toScreen(one.x, one.y);
    const [x2, y2] = this.toScreen(other.x, other.y);
    if (one === other) {
      const reach = this.radius(one) * 3.2;
      return { x1: x1 - 4, y1, x2: x1 + 4, y2: y1, cx: x1, cy: y1 - reach * 2, end: this.radius(one) };
    }
    const way = line.info.source < line.info.target ? 1 : -1;
    const bend = line.bend * way * 26 * Math.min(1, this.camera.zoom);
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    return {
      x1,
      y1,
      x2,
      y2,
      cx: (x1 + x2) / 2 - ((y2 - y1) / length) * bend * way,
      cy: (y1 + y2) / 2 + ((x2 - x1) / length) * bend * way,
      end: this.radius(other),
    };
  }

  private drawDots(emphasis: Emphasis, marked: ReadonlySet<string>, near: Set<string>): void {
    const { context, palette } = this;
    const dims = near.size > 0 || marked.size > 0;
    for (const [handle, dot] of this.scene.dots) {
      const [x, y] = this.toScreen(dot.x, dot.y);
      if (x < -40 || y < -40 || x > this.width + 40 || y > this.height + 40) continue;
      const radius = this.radius(dot);
      const { selected, hovered, picked } = emphasis;
      const isStrong = [selected, hovered, picked].includes(handle) || near.has(handle) || marked.has(handle);
      context.beginPath();
      context.arc(x, y, radius, 0, Math.PI * 2);
      // Below a pale node too, so that no line is seen through it.
      context.fillStyle = palette.background;
      context.fill();
      context.globalAlpha = dims && !isStrong ? 0.45 : 1;
      if (!dot.info.missing) {
        context.fillStyle = colourOf(dot.info.class);
        context.fill();
      }
      context.lineWidth = 1.5;
      context.strokeStyle = dot.info.missing ? colourOf(dot.info.class) : palette.background;
      if (dot.info.missing) context.setLineDash([3, 3]);
      context.stroke();
      context.setLineDash([]);
      if (dot.lanes?.some((lane) => lane.next)) this.drawMore(x + radius * 0.75, y - radius * 0.75);
      if (handle === emphasis.selected || handle === emphasis.picked || marked.has(handle)) {
        context.beginPath();
        context.arc(x, y, radius + 4, 0, Math.PI * 2);
        context.lineWidth = handle === emphasis.selected ? 3 : 2;
        context.strokeStyle = palette.accent;
        if (handle === emphasis.picked && handle !== emphasis.selected) context.setLineDash([4, 3]);
        context.stroke();
        context.setLineDash([]);
      }
      context.globalAlpha = 1;
    }
  }

  /** A sign that a node has more neighbours than are drawn. */
  private drawMore(x: number, y: number): void {
    const { context, palette } = this;
    context.beginPath();
    context.arc(x, y, 6, 0, Math.PI * 2);
    context.fillStyle = palette.background;
    context.fill();
    context.strokeStyle = palette.text;
    context.lineWidth = 1.4;
    context.beginPath();
    context.moveTo(x - 3, y);
    context.lineTo(x + 3, y);
    context.moveTo(x, y - 3);
    context.lineTo(x, y + 3);
    context.stroke();
  }

  private drawLabels(emphasis: Emphasis, marked: ReadonlySet<string>, near: Set<string>): void {
    const taken = new Taken();
    const weight = (handle: string, dot: Dot): number => {
      if (handle === emphasis.selected || handle === emphasis.hovered) return 1e6;
      if (handle === emphasis.picked || marked.has(handle)) return 1e5;
      return (near.has(handle) ? 1e4 : 0) + dot.degree;
    };
    const around = this.neighbours();
    const dots = [...this.scene.dots].map(([handle, dot]) => ({
      dot,
      weight: weight(handle, dot),
      ring: [emphasis.selected, emphasis.picked].includes(handle) || marked.has(handle) ? RING : 0,
      around: around.get(dot) ?? [],
    }));
    dots.sort((one, other) => other.weight - one.weight);
    this.covered = this.covers().map(([, box]) => box);
    for (const box of this.covered) taken.keep(box);
    const { context } = this;
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const landmarks = dots.length > CROWDED ? dots.filter((each) => each.weight < 1e4).slice(0, LANDMARKS) : [];
    for (const each of landmarks) this.drawLabel(taken, each);
    this.landmarks = taken.boxes.length;
    // The nodes themselves first: no label of another node hides one.
    for (const { dot } of dots) {
      const [x, y] = this.toScreen(dot.x, dot.y);
      const reach = this.radius(dot) * 0.8;
      if (x > -40 && y > -40 && x < this.width + 40 && y < this.height + 40)
        taken.keep({ left: x - reach, top: y - reach, right: x + reach, bottom: y + reach });
    }
    for (const each of dots) if (!landmarks.includes(each)) this.drawLabel(taken, each);
    if (this.camera.zoom > 0.55 || near.size) this.drawLineLabels(taken, emphasis, marked);
    this.labels = taken.boxes;
  }

  /** For each node, those at the other ends of its lines. */
  private neighbours(): Map<Dot, Dot[]> {
    const found = new Map<Dot, Dot[]>();
    for (const { info } of this.scene.lines.values()) {
      const [one, other] = [this.scene.dots.get(info.source), this.scene.dots.get(info.target)];
      if (!one || !other || one === other) continue;
      for (const [dot, far] of [
        [one, other],
        [other, one],
      ] as const) {
        const known = found.get(dot);
        if (known) known.push(far);
        else found.set(dot, [far]);
      }
    }
    return found;
  }

  private drawLabel(taken: Taken, { dot, weight, ring, around }: Labelled): void {
    const { context, palette } = this;
    const [isStrong, isBold, isForced] = [weight >= 1e4, weight >= 1e5, weight >= 1e6];
    const [x, y] = this.toScreen(dot.x, dot.y);
    if (x < -60 || y < -20 || x > this.width + 60 || y > this.height + 20) return;
    context.font = `${isBold ? 600 : 400} ${FONT}px system-ui, sans-serif`;
    const text = shortened(dot.info.title.replace(/\s+/g, " "), isStrong ? 48 : 26);
    const width = this.measured(text, context.font);
    const radius = this.radius(dot) + ring;
    // Beside the node, or below or above it, where there is room, and fewest of the node's own lines.
    const middle = Math.max(4, Math.min(this.width - width - 4, x - width / 2));
    const places: [number, number][] = [
      [x + radius + 5, y],
      [middle, y + radius + 11],
      [middle, y - radius - 11],
      [x - radius - 5 - width, y],
    ];
    const box = ([left, middle]: [number, number]) => ({
      left: left - 2,
      top: middle - 8,
      right: left + width + 2,
      bottom: middle + 8,
    });
    const ends = around.map((far) => this.toScreen(far.x, far.y));
    const whole = places
      .filter(([left]) => left >= 2 && left + width + 2 <= this.width)
      .map((place) => ({ place, lines: ends.filter(([far, down]) => crosses(box(place), x, y, far, down)).length }))
      .sort((one, other) => one.lines - other.lines)
      .map(({ place }) => place);
    let found = whole.find((place) => taken.take(box(place)));
    // What is selected, or under the pointer, has its name in any case, and no control covers it if that can be.
    if (isForced) found ??= whole.find((place) => !this.covered.some((each) => overlap(each, box(place))));
    if (isForced) found ??= whole[0] ?? places[0];
    if (!found) return;
    taken.keep(box(found));
    context.globalAlpha = dot.info.missing ? 0.6 : 1;
    context.lineWidth = 3.5;
    context.strokeStyle = palette.background;
    context.strokeText(text, ...found);
    context.fillStyle = isStrong || !this.scene.marked.value.size ? palette.text : palette.muted;
    context.fillText(text, ...found);
    context.globalAlpha = 1;
  }

  private drawLineLabels(taken: Taken, emphasis: Emphasis, marked: ReadonlySet<string>): void {
    const { context, palette } = this;
    context.font = `${FONT - 1}px system-ui, sans-serif`;
    const focus = emphasis.hovered ?? emphasis.selected;
    const isDense = this.scene.lines.size > DENSE;
    for (const [handle, line] of this.scene.lines) {
      const { source, target } = line.info;
      const isStrong = handle === focus || source === focus || target === focus || marked.has(handle);
      if (!isStrong && (isDense || this.camera.zoom < 0.8)) continue;
      const curve = this.curve(line);
      if (!curve || Math.hypot(curve.x2 - curve.x1, curve.y2 - curve.y1) < 70) continue;
      const [x, y] = along(curve, 0.5);
      if (x < 0 || y < 0 || x > this.width || y > this.height) continue;
      const text = line.info.child ? "child" : cut(line.info.class, 24);
      const width = this.measured(text, context.font);
      if (!taken.take({ left: x - width / 2 - 2, top: y - 7, right: x + width / 2 + 2, bottom: y + 7 })) continue;
      context.lineWidth = 3.5;
      context.strokeStyle = palette.background;
      context.strokeText(text, x - width / 2, y);
      context.fillStyle = isStrong ? palette.text : palette.muted;
      context.fillText(text, x - width / 2, y);
    }
  }

  private measured(text: string, font: string): number {
    const key = `${font}\n${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > 5000) this.widths.clear();
      width = this.context.measureText(text).width;
      this.widths.set(key, width);
    }
    return width;
  }
}

interface Labelled {
  dot: Dot;
  weight: number;
  /** How far a ring around the node reaches, 0 without one. */
  ring: number;
  around: Dot[];
}

interface Curve {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
  cx: number;
  cy: number;
  end: number;
}

function along(curve: Curve, at: number): [number, number] {
  const rest = 1 - at;
  return [
    rest * rest * curve.x1 + 2 * rest * at * curve.cx + at * at * curve.x2,
    rest * rest * curve.y1 + 2 * rest * at * curve.cy + at * at * curve.y2,
  ];
}

/** Whether a line from one point to another passes through a part of the canvas. */
function crosses(box: Box, x1: number, y1: number, x2: number, y2: number): boolean {
  // What is left of the line after each side has cut off its outside.
  let [from, to] = [0, 1];
  for (const [way, room] of [
    [x1 - x2, x1 - box.left],
    [x2 - x1, box.right - x1],
    [y1 - y2, y1 - box.top],
    [y2 - y1, box.bottom - y1],
  ] as const) {
    if (way === 0 && room < 0) return false;
    if (way < 0) from = Math.max(from, room / way);
    else if (way > 0) to = Math.min(to, room / way);
  }
  return from < to;
}

function distance(x: number, y: number, from: [number, number], to: [number, number]): number {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const length = dx * dx + dy * dy || 1;
  const at = Math.max(0, Math.min(1, ((x - from[0]) * dx + (y - from[1]) * dy) / length));
  return Math.hypot(x - from[0] - at * dx, y - from[1] - at * dy);
}
