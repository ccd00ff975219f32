// The Graph view: find nodes, see them with their neighbours, and the ways between them.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Cost, EdgeInfo, NodeInfo } from "../api";
import { colourOf } from "../colours";
import { Details } from "../details";
import { editing } from "../editing";
import { count, cut } from "../format";
import { Icon } from "../icons";
import { asked, model, nodeClasses, said, selection, theme, written } from "../state";
import { GraphCanvas, tellCanvas } from "./canvas";
import { picked } from "./picking";
import { scene } from "./scene";

interface Found {
  nodes: NodeInfo[];
  problem?: string;
  cost: Cost;
}

const FIRST = 6;
const ENOUGH = 24;
/** At first, so many nodes are expanded at most, until so many are drawn. */

async function begin(): Promise<void> {
  const answer = await asked<{ nodes: NodeInfo[]; cost: Cost }>("start");
  // Nodes of all classes in turn, so that the drawing shows what there is.
  const byClass = new Map<string, NodeInfo[]>();
  for (const node of answer.nodes) byClass.set(node.class, [...(byClass.get(node.class) ?? []), node]);
  const chosen: NodeInfo[] = [];
  for (let turn = 0; chosen.length < FIRST && turn < FIRST; turn++)
    for (const nodes of byClass.values()) if (nodes[turn] && chosen.length < FIRST) chosen.push(nodes[turn]!);
  let expanded = 0;
  for (const node of chosen) {
    if (scene.dots.size >= ENOUGH || expanded >= FIRST) break;
    scene.add([node], []);
    // From one node to the next along edges, so that what is drawn hangs together.
    let next: string | undefined = node.handle;
    while (next && scene.dots.size < ENOUGH && expanded < FIRST) {
      await scene.expand(next);
      expanded += 1;
      next = [...scene.dots].find(([, dot]) => !dot.lanes && !dot.info.missing && dot.degree > 0)?.[0];
    }
  }
}

/** Draws what is selected in another view. */
async function bring(): Promise<void> {
  const chosen = selection.value;
  if (!chosen) return;
  if (chosen.kind === "node" && !scene.dots.has(chosen.handle)) {
    const answer = await asked<{ node: NodeInfo; cost: Cost }>("node", { handle: chosen.handle });
    scene.add([answer.node], []);
    await scene.expand(chosen.handle);
  } else if (chosen.kind === "edge" && !scene.lines.has(chosen.handle)) {
    const answer = await asked<{ edge: EdgeInfo | null; cost: Cost }>("edge", { handle: chosen.handle });
    if (!answer.edge) return;
    const ends = [answer.edge.source, answer.edge.target].filter((handle) => !scene.dots.has(handle));
    const nodes = await Promise.all(ends.map((handle) => asked<{ node: NodeInfo; cost: Cost }>("node", { handle })));
    scene.add(
      nodes.map((each) => each.node),
      [answer.edge],
    );
  }
}

export function GraphView() {
  const isEmpty = scene.changed.use() >= 0 && scene.dots.size === 0;
  const [isReady, setReady] = useState(false);
  const chosen = selection.use();
  useEffect(() => {
    const first = async () => {
      if (chosen) await bring();
      if (scene.dots.size === 0) await begin();
    };
    first()
      .catch(() => undefined)
      .finally(() => setReady(true));
  }, []);
  useEffect(() => {
    if (isReady) bring().catch(() => undefined);
  }, [chosen?.handle]);
  return (
    <div class={chosen ? "graph with-details" : "graph"} aria-busy={!isReady}>
      <div class="stage">
        <GraphCanvas />
        <Finder />
        <Legend />
        <Tools />
        {isReady && isEmpty && (
          <p class="empty">
            Nothing is drawn. Find a node by its id{model.value?.writable ? ", or add one" : ""}.
          </p>
        )}
      </div>
      {chosen && <Details />}
    </div>
  );
}

// --- finding -------------------------------------------------------------------------------------

function Finder() {
  const [text, setText] = useState("");
  const [where, setWhere] = useState("");
  const [found, setFound] = useState<Found | null>(null);
  // Whoever has selected something needs no hint any more.
  const [wasChosen, setWasChosen] = useState(selection.value !== null);
  useEffect(() => selection.follow(() => setWasChosen(true)), []);
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const slash = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea, select");
      if (event.key === "/" && !typing) {
        event.preventDefault();
        box.current?.focus();
      }
    };
    addEventListener("keydown", slash);
    return () => removeEventListener("keydown", slash);
  }, []);
  const [name, by] = where.split(".", 2);
  const show = (node: NodeInfo) => {
    scene.add([node], []);
    selection.set({ kind: "node", handle: node.handle });
    setFound(null);
    scene.expand(node.handle).catch(() => undefined);
  };
  const find = async (event: Event) => {
    event.preventDefault();
    if (!text.trim()) return;
    try {
      const answer = await asked<Found>("find", { text: text.trim(), model: name || null, by: by || null });
      setFound(answer);
      said.set(count(answer.nodes.length, "node"));
      if (answer.nodes.length === 1) show(answer.nodes[0]!);
    } catch {
      setFound(null);
    }
  };
  return (
    <form class="finder" role="search" onSubmit={find}>
      <div class="finder-row" data-covers="top">
        <input
          ref={box}
          type="search"
          placeholder="Find a node"
          aria-label="Find a node by its id or an indexed value"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <select aria-label="Where to look" value={where} onChange={(event) => setWhere(event.currentTarget.value)}>
          <option value="">any class</option>
          {nodeClasses().map((each) => (
            <optgroup key={each.name} label={each.name}>
              <option value={`${each.name}.id`}>{`${each.name} · id`}</option>
              {each.fields
                .filter((field) => field.indexed || field.unique)
                .map((field) => (
                  <option key={field.name} value={`${each.name}.${field.name}`}>
                    {`${each.name} · ${field.name}`}
                  </option>
                ))}
            </optgroup>
          ))}
        </select>
        <button type="submit" aria-label="Find">
          <Icon name="search" />
        </button>
      </div>
      {!found && !wasChosen && scene.dots.size > 0 && (
        <p class="tip" data-covers="top">Click a node for its details, and once more for its neighbours.</p>
      )}
      {found && (found.nodes.length !== 1 || found.problem) && (
        <ul class="found">
          {found.nodes.length === 0 && <li class="none">{found.problem ?? "No node has this id or value."}</li>}
          {found.nodes.map((node) => (
            <li key={node.handle}>
              <button type="button" onClick={() => show(node)}>
                <Dot name={node.class} />
                <bdi>{cut(node.title, 60)}</bdi>
                <small>{node.class}</small>
              </button>
            </li>
          ))}
        </ul>
      )}
    </form>
  );
}

export function Dot({ name }: { name: string }) {
  theme.use();
  const mark = useRef<HTMLSpanElement>(null);
  useEffect(() => mark.current?.style.setProperty("background", colourOf(name)));
  return <span class="dot" ref={mark} aria-hidden="true" />;
}

// --- what is drawn -------------------------------------------------------------------------------

function Legend() {
  scene.changed.use();
  const counts = new Map<string, number>();
  for (const dot of scene.dots.values()) counts.set(dot.info.class, (counts.get(dot.info.class) ?? 0) + 1);
  const drawn = nodeClasses().filter((each) => counts.has(each.name));
  if (!drawn.length) return null;
  return (
    <ul class="legend" data-covers="bottom" aria-label="Classes that are drawn">
      {drawn.map((each) => (
        <li key={each.name}>
          <Dot name={each.name} />
          {each.name} <small>{count(counts.get(each.name) ?? 0)}</small>
        </li>
      ))}
    </ul>
  );
}

function Tools() {
  const from = picked.use();
  const chosen = selection.use();
  scene.changed.use();
  const marked = scene.marked.use();
  written.use();
  const start = from ? scene.dots.get(from) : undefined;
  const canJoin = from && chosen?.kind === "node" && chosen.handle !== from;
  const find = async () => {
    if (!from || !chosen) return;
    const answer = await asked<{ path: { nodes: NodeInfo[]; edges: EdgeInfo[] } | null; problem?: string; cost: Cost }>(
      "path",
      { one: from, other: chosen.handle },
    );
    if (answer.path) {
      scene.add(answer.path.nodes, answer.path.edges, from);
      scene.mark(answer.path.nodes, answer.path.edges);
      said.set(`A path of ${count(answer.path.edges.length, "edge")}`);
    } else said.set(answer.problem ?? "There is no path of at most six edges");
    setNone(answer.path ? "" : (answer.problem ?? "No path of at most six edges joins them."));
  };
  const drawn = [...marked].filter((handle) => scene.dots.has(handle)).length;
  const [none, setNone] = useState("");
  useEffect(() => setNone(""), [from, chosen?.handle]);
  return (
    <>
      <div class="tools" role="toolbar" data-covers="right" aria-label="Drawing">
        {model.value?.writable && (
          <button
            type="button"
            title="Add a node"
            aria-label="Add a node"
            onClick={() => editing.set({ kind: "add", class: nodeClasses()[0]?.name ?? "" })}
          >
            <Icon name="add" />
          </button>
        )}
        <button type="button" title="Zoom in (+)" aria-label="Zoom in" onClick={() => tellCanvas("adjoin-zoom", 1.3)}>
          <Icon name="plus" />
        </button>
        <button type="button" title="Zoom out (−)" aria-label="Zoom out" onClick={() => tellCanvas("adjoin-zoom", 0.77)}>
          <Icon name="minus" />
        </button>
        <button type="button" title="Show all (0)" aria-label="Show all" onClick={() => tellCanvas("adjoin-fit")}>
          <Icon name="fit" />
        </button>
        <button type="button" title="Arrange anew" aria-label="Arrange anew" onClick={() => scene.arrange()}>
          <Icon name="arrange" />
        </button>
        <button
          type="button"
          title="Clear the drawing"
          aria-label="Clear the drawing"
          onClick={() => {
            selection.set(null);
            picked.set(null);
            scene.clear();
          }}
        >
          <Icon name="clear" />
        </button>
      </div>
      {(start || marked.size > 0) && (
        <div class="path-bar" data-covers="top">
          {!start && <span>{count(drawn, "node")} marked</span>}
          {start && (
            <span>
              From <Dot name={start.info.class} /> <bdi>{cut(start.info.title, 24)}</bdi>
            </span>
          )}
          {canJoin && (
            <button type="button" class="primary" onClick={() => void find().catch(() => undefined)}>
              <span>
                Shortest path<span class="spacious"> to the selected node</span>
              </span>
            </button>
          )}
          {start && !canJoin && <span class="hint">Select the other node</span>}
          {none && <span class="hint">{none}</span>}
          <button
            type="button"
            aria-label="Forget the path"
            onClick={() => {
              picked.set(null);
              scene.marked.set(new Set());
            }}
          >
            <Icon name="close" />
          </button>
        </div>
      )}
    </>
  );
}
