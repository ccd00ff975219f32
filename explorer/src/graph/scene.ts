// The nodes and edges that are drawn, what is known of their neighbours, and where they are.
import type { EdgeInfo, Lane, LanePage, Neighbours, NodeInfo } from "../api";
import { asked, Cell, said } from "../state";
import type { FromWorker, ToWorker } from "./messages";

export interface Dot {
  info: NodeInfo;
  x: number;
  y: number;
  degree: number;
  /** Lanes that were read, with where each goes on; null before the node was expanded. */
  lanes: LanePage[] | null;
}

export interface Line {
  info: EdgeInfo;
  /** Which of several edges between the same two nodes it is, around 0. */
  bend: number;
}

export function radiusOf(dot: Dot): number {
  return Math.min(18, 6 + Math.sqrt(dot.degree) * 1.5);
}

export class Scene {
  readonly dots = new Map<string, Dot>();
  readonly lines = new Map<string, Line>();
  /** Grows with each change, for views to follow. */
  readonly changed = new Cell(0);
  readonly settled = new Cell(true);
  /** Nodes and edges that are drawn strong: a path, a recommendation. */
  readonly marked = new Cell<ReadonlySet<string>>(new Set());
  private order: string[] = [];
  private version = 0;
  private worker = new Worker("layout-worker.js", { type: "module" });
  onMoved: () => void = () => undefined;

  constructor() {
    this.worker.addEventListener("message", (event: MessageEvent<FromWorker>) => this.placed(event.data));
  }

  private placed(message: FromWorker): void {
    if (message.version !== this.version) return;
    this.order.forEach((handle, at) => {
      const dot = this.dots.get(handle);
      if (!dot) return;
      dot.x = message.places[at * 2] ?? 0;
      dot.y = message.places[at * 2 + 1] ?? 0;
    });
    this.settled.set(message.settled);
    this.onMoved();
  }

  /** Adds nodes and edges; new ones begin around a node that is drawn already. */
  add(nodes: NodeInfo[], edges: EdgeInfo[], around?: string): void {
    const centre = around ? this.dots.get(around) : undefined;
    let fresh = 0;
    for (const info of nodes) {
      const known = this.dots.get(info.handle);
      if (known) {
        if (!info.missing) known.info = info;
        continue;
      }
      // A spiral: the same nodes always begin at the same places, so a drawing can be compared with another.
      const turn = this.dots.size * 2.399963;
      const far = centre ? 40 + 6 * Math.sqrt(fresh) : 12 * Math.sqrt(this.dots.size);
      this.dots.set(info.handle, {
        info,
        x: (centre?.x ?? 0) + far * Math.cos(turn),
        y: (centre?.y ?? 0) + far * Math.sin(turn),
        degree: 0,
        lanes: null,
      });
      fresh += 1;
    }
    let joined = 0;
    for (const info of edges) {
      if (!this.dots.has(info.source) || !this.dots.has(info.target)) continue;
      if (this.lines.has(info.handle)) {
        this.lines.get(info.handle)!.info = info;
        continue;
      }
      this.lines.set(info.handle, { info, bend: 0 });
      this.dots.get(info.source)!.degree += 1;
      this.dots.get(info.target)!.degree += 1;
      joined += 1;
    }
    if (fresh || joined) {
      this.bend();
      this.lay(fresh > 0 ? 0.9 : 0.3);
    }
    this.changed.set(this.changed.value + 1);
  }

  remove(handles: string[]): void {
    for (const handle of handles) {
      this.dots.delete(handle);
      this.lines.delete(handle);
    }
    for (const [handle, line] of this.lines) {
      if (!this.dots.has(line.info.source) || !this.dots.has(line.info.target)) this.lines.delete(handle);
    }
    for (const dot of this.dots.values()) dot.degree = 0;
    for (const line of this.lines.values()) {
      this.dots.get(line.info.source)!.degree += 1;
      this.dots.get(line.info.target)!.degree += 1;
    }
    this.bend();
    this.lay(0.3);
    this.changed.set(this.changed.value + 1);
  }

  /** Places all nodes anew, as if they had come at once: the same nodes in the same order give the same drawing. */
  arrange(): void {
    let at = 0;
    for (const dot of this.dots.values()) {
      const turn = at * 2.399963;
      const far = 12 * Math.sqrt(at);
      [dot.x, dot.y] = [far * Math.cos(turn), far * Math.sin(turn)];
      at += 1;
    }
    this.lay(1);
  }

  /** The first node of a class that is drawn and exists. */
  firstOf(name: string): string | undefined {
    return [...this.dots].find(([, { info }]) => info.class === name && !info.missing)?.[0];
  }

  clear(): void {
    this.dots.clear();
    this.lines.clear();
    this.marked.set(new Set());
    this.lay(0);
    this.changed.set(this.changed.value + 1);
  }

  /** Several edges between the same two nodes are drawn side by side. */
  private bend(): void {
    const beside = new Map<string, Line[]>();
    for (const line of this.lines.values()) {
      const pair = [line.info.source, line.info.target].sort().join("\n");
      const found = beside.get(pair);
      if (found) found.push(line);
      else beside.set(pair, [line]);
    }
    for (const lines of beside.values())
      lines.forEach((line, at) => {
        const way = line.info.source < line.info.target ? 1 : -1;
        line.bend = way * (at - (lines.length - 1) / 2);
      });
  }

  private lay(alpha: number): void {
    this.order = [...this.dots.keys()];
    const at = new Map(this.order.map((handle, number) => [handle, number]));
    const places = new Float32Array(this.order.length * 2);
    const radii = new Float32Array(this.order.length);
    this.order.forEach((handle, number) => {
      const dot = this.dots.get(handle)!;
      places[number * 2] = dot.x;
      places[number * 2 + 1] = dot.y;
      radii[number] = radiusOf(dot);
    });
    const pairs = new Uint32Array(this.lines.size * 2);
    let next = 0;
    for (const line of this.lines.values()) {
      pairs[next++] = at.get(line.info.source)!;
      pairs[next++] = at.get(line.info.target)!;
    }
    this.version += 1;
    if (this.order.length) this.settled.set(false);
    this.send({ kind: "graph", version: this.version, places, radii, pairs, alpha });
  }

  drag(handle: string, x: number, y: number): void {
    this.send({ kind: "drag", node: this.order.indexOf(handle), x, y });
  }

  private send(message: ToWorker): void {
    this.worker.postMessage(message);
  }

  // --- what is read ------------------------------------------------------------------------------

  /** Reads the first page of each lane of a node. */
  async expand(handle: string): Promise<void> {
    const answer = await asked<Neighbours>("neighbours", { handle });
    const dot = this.dots.get(handle);
    if (dot) dot.lanes = answer.lanes;
    this.add(answer.nodes, answer.edges, handle);
    const more = answer.lanes.some((lane) => lane.next);
    said.set(`${answer.nodes.length} neighbours${more ? ", and there are more" : ""}`);
  }

  /** Reads the next page of one lane. */
  async more(handle: string, lane: LanePage): Promise<void> {
    const asking: Lane = { class: lane.class, direction: lane.direction };
    const answer = await asked<Neighbours>("neighbours", { handle, lane: asking, after: lane.next });
    const dot = this.dots.get(handle);
    const read = answer.lanes[0];
    if (dot?.lanes && read)
      dot.lanes = dot.lanes.map((each) =>
        each.class === lane.class && each.direction === lane.direction ? read : each,
      );
    this.add(answer.nodes, answer.edges, handle);
    said.set(`${answer.nodes.length} more neighbours`);
  }

  mark(nodes: NodeInfo[], edges: EdgeInfo[]): void {
    this.marked.set(new Set([...nodes, ...edges].map((each) => each.handle)));
  }
}

export const scene = new Scene();
