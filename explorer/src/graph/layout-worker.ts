// Where nodes are drawn: forces, computed apart from the page so that it never stutters.
import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type SimulationNodeDatum,
} from "d3-force";
import type { FromWorker, ToWorker } from "./messages";

interface Placed extends SimulationNodeDatum {
  radius: number;
}

const TICKS_A_MESSAGE = 6;
let nodes: Placed[] = [];
let version = 0;
let timer = 0;
const links = forceLink<Placed, { source: number; target: number }>([]);
const simulation = forceSimulation<Placed>([])
  .force("link", links)
  .force("charge", forceManyBody<Placed>().strength(-220).theta(0.9).distanceMax(900))
  .force("collide", forceCollide<Placed>((node) => node.radius + 7).iterations(2))
  .force("x", forceX<Placed>(0).strength(0.035))
  .force("y", forceY<Placed>(0).strength(0.045))
  .alphaDecay(0.028)
  .stop();

function tell(settled: boolean): void {
  const places = new Float32Array(nodes.length * 2);
  nodes.forEach((node, at) => {
    places[at * 2] = node.x ?? 0;
    places[at * 2 + 1] = node.y ?? 0;
  });
  const message: FromWorker = { version, places, settled };
  postMessage(message, { transfer: [places.buffer] });
}

function run(): void {
  for (let tick = 0; tick < TICKS_A_MESSAGE; tick++) simulation.tick();
  const settled = simulation.alpha() < simulation.alphaMin();
  tell(settled);
  if (!settled) timer = setTimeout(run, 0);
}

addEventListener("message", (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  clearTimeout(timer);
  if (message.kind === "graph") {
    version = message.version;
    nodes = Array.from({ length: message.radii.length }, (_, at) => ({
      index: at,
      x: message.places[at * 2],
      y: message.places[at * 2 + 1],
      radius: message.radii[at] ?? 6,
    }));
    simulation.nodes(nodes);
    const pairs = [];
    for (let at = 0; at < message.pairs.length; at += 2)
      pairs.push({ source: message.pairs[at]!, target: message.pairs[at + 1]! });
    links.distance(70).links(pairs);
    simulation.alpha(message.alpha);
  } else {
    const node = nodes[message.node];
    if (node) {
      node.fx = message.x;
      node.fy = message.y;
      simulation.alpha(Math.max(simulation.alpha(), 0.2));
    }
  }
  timer = setTimeout(run, 0);
});
