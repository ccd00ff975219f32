// What is selected: its fields, where it is stored, and what is connected with it.
import { useEffect, useState } from "preact/hooks";
import type { Cost, EdgeAnswer, EdgeInfo, Field, Json, Lane, LanePage, NodeAnswer, NodeInfo } from "./api";
import { EditButtons } from "./editing";
import { idOf, valueText } from "./format";
import { picked } from "./graph/picking";
import { scene } from "./graph/scene";
import { Dot } from "./graph/view";
import { Icon } from "./icons";
import { asked, classOf, edgeClasses, model, selection, view, written } from "./state";

const ARROWS = { out: "→", into: "←", children: "⤷", parent: "⤴" };

export function Details() {
  const chosen = selection.use();
  const round = written.use();
  const [node, setNode] = useState<NodeAnswer | null>(null);
  const [edge, setEdge] = useState<EdgeAnswer | null>(null);
  useEffect(() => {
    let isCurrent = true;
    setNode(null);
    setEdge(null);
    if (chosen?.kind === "node")
      asked<NodeAnswer>("node", { handle: chosen.handle }).then((found) => isCurrent && setNode(found), () => undefined);
    else if (chosen)
      asked<EdgeAnswer>("edge", { handle: chosen.handle }).then((found) => isCurrent && setEdge(found), () => undefined);
    return () => {
      isCurrent = false;
    };
  }, [chosen?.handle, round]);
  const [opener] = useState(() => document.activeElement);
  if (!chosen) return null;
  /** Whoever uses the keyboard goes on where the details were opened. */
  const close = () => {
    selection.set(null);
    const isThere = opener instanceof HTMLElement && opener.isConnected && opener !== document.body;
    (isThere ? opener : document.querySelector<HTMLElement>("#canvas, nav [aria-current]"))?.focus();
  };
  const escape = (event: KeyboardEvent) => {
    if (event.key === "Escape") close();
  };
  return (
    <aside class="details" aria-label="Details" aria-busy={!node && !edge} onKeyDown={escape}>
      <button type="button" class="close" aria-label="Close details" onClick={close}>
        <Icon name="close" />
      </button>
      {node && <NodeDetails answer={node} />}
      {edge && <EdgeDetails answer={edge} />}
    </aside>
  );
}

function NodeDetails({ answer }: { answer: NodeAnswer }) {
  const { node } = answer;
  scene.changed.use();
  const dot = scene.dots.get(node.handle);
  const isGraph = view.use() === "graph";
  return (
    <>
      <header>
        <p class="kind">
          <Dot name={node.class} />
          {node.class}
        </p>
        <h2>
          <bdi>{node.title}</bdi>
        </h2>
        {node.missing && <p class="warning">This node does not exist, but an edge leads to it.</p>}
      </header>
      <Fields name={node.class} values={node.fields} />
      <Keys keys={answer.key} />
      {isGraph ? (
        <section>
          <h3>Neighbours</h3>
          <Lanes handle={node.handle} lanes={dot?.lanes ?? null} all={answer.lanes} />
          <div class="row">
            <button type="button" class="primary" onClick={() => void scene.expand(node.handle).catch(() => undefined)}>
              {dot?.lanes ? "Read again" : "Expand"}
            </button>
            <button type="button" onClick={() => picked.set(node.handle)}>
              Path from here
            </button>
            <button
              type="button"
              onClick={() => {
                selection.set(null);
                scene.remove([node.handle]);
              }}
            >
              Hide
            </button>
          </div>
        </section>
      ) : (
        <div class="row">
          <button type="button" onClick={() => view.set("graph")}>
            Show in the graph
          </button>
        </div>
      )}
      {isGraph && !node.missing && <Recommend node={node} />}
      {model.value?.writable && <EditButtons node={node} />}
    </>
  );
}

function Lanes({ handle, lanes, all }: { handle: string; lanes: LanePage[] | null; all: Lane[] }) {
  const drawn = (lane: Lane) =>
    [...scene.lines.values()].filter(({ info }) => {
      if (info.class !== lane.class) return false;
      if (lane.direction === "children") return info.child && info.source === handle;
      if (lane.direction === "parent") return info.child && info.target === handle;
      if (info.symmetric) return info.source === handle || info.target === handle;
      return lane.direction === "out" ? info.source === handle : info.target === handle;
    }).length;
  return (
    <ul class="lanes">
      {(lanes ?? all).map((lane) => {
        const read = lane as LanePage;
        return (
          <li key={`${lane.direction} ${lane.class}`}>
            <span>
              <span aria-label={lane.direction}>{ARROWS[lane.direction]}</span> {lane.class}
            </span>
            <span>
              {drawn(lane)} drawn
              {read.next && (
                <button type="button" class="more" onClick={() => void scene.more(handle, read).catch(() => undefined)}>
                  more…
                </button>
              )}
            </span>
            {read.error && <p class="warning">{read.error}</p>}
          </li>
        );
      })}
    </ul>
  );
}

interface Recommended {
  recommendations: { node: NodeInfo; score: string; through: NodeInfo[] }[];
  partial: boolean;
  cost: Cost;
}

function Recommend({ node }: { node: NodeInfo }) {
  const classes = edgeClasses().filter((each) => [...each.source!, ...each.target!].includes(node.class));
  const [name, setName] = useState(classes[0]?.name ?? "");
  const [found, setFound] = useState<Recommended | null>(null);
  useEffect(() => {
    setFound(null);
    setName(classes[0]?.name ?? "");
  }, [node.handle]);
  if (!classes.length) return null;
  const chosen = classOf(name);
  const recommend = async () => {
    const direction = chosen?.source?.includes(node.class) ? "out" : "into";
    const answer = await asked<Recommended>("recommend", { handle: node.handle, model: name, direction });
    setFound(answer);
    const nodes = answer.recommendations.flatMap((each) => [each.node, ...each.through]);
    scene.add(nodes, [], node.handle);
    for (const each of new Set(answer.recommendations.flatMap((one) => one.through.map((way) => way.handle))))
      await scene.expand(each);
    scene.mark([node, ...nodes], []);
  };
  return (
    <section>
      <h3>Recommendations</h3>
      <div class="row">
        <select aria-label="By common" value={name} onChange={(event) => setName(event.currentTarget.value)}>
          {classes.map((each) => (
            <option key={each.name}>{each.name}</option>
          ))}
        </select>
        <button type="button" onClick={() => void recommend().catch(() => undefined)}>
          Recommend
        </button>
      </div>
      {found && (
        <ol class="recommended">
          {found.recommendations.map((each) => (
            <li key={each.node.handle}>
              <button
                type="button"
                class="link"
                onClick={() => selection.set({ kind: "node", handle: each.node.handle })}
              >
                <bdi>{each.node.title}</bdi>
              </button>{" "}
              <small>
                {each.score}, through {each.through.map((way) => way.title).join(", ")}
              </small>
            </li>
          ))}
          {found.recommendations.length === 0 && <li class="none">No other node has anything in common with it.</li>}
          {found.partial && <li class="none">Not everything was read; it would take too many requests.</li>}
        </ol>
      )}
    </section>
  );
}

function EdgeDetails({ answer }: { answer: EdgeAnswer }) {
  const { edge } = answer;
  if (!edge) return <p class="warning">This edge does not exist any more.</p>;
  return (
    <>
      <header>
        <p class="kind">{edge.symmetric ? "symmetric edge" : "edge"}</p>
        <h2>{edge.class}</h2>
      </header>
      <ul class="ends">
        <End edge={edge} side="source" />
        <End edge={edge} side="target" />
      </ul>
      <Fields name={edge.class} values={edge.fields} />
      <Keys keys={answer.key} />
      {model.value?.writable && <EditButtons edge={edge} />}
      {view.use() !== "graph" && (
        <div class="row">
          <button type="button" onClick={() => view.set("graph")}>
            Show in the graph
          </button>
        </div>
      )}
    </>
  );
}

function End({ edge, side }: { edge: EdgeInfo; side: "source" | "target" }) {
  const handle = edge[side];
  const known = scene.dots.get(handle)?.info;
  return (
    <li>
      <small>{side === "source" ? "from" : "to"}</small>{" "}
      <button type="button" class="link" onClick={() => selection.set({ kind: "node", handle })}>
        <Dot name={handle.split("/", 1)[0]!} />
        <bdi>{known?.title ?? idOf(handle)}</bdi>
      </button>
    </li>
  );
}

export function Fields({ name, values }: { name: string; values: Record<string, Json> }) {
  const declared = new Map<string, Field>(classOf(name)?.fields.map((field) => [field.name, field]));
  const shown = Object.entries(values);
  const plain = shown.filter(([each]) => !declared.get(each)?.managed);
  const managed = shown.filter(([each]) => declared.get(each)?.managed);
  return (
    <>
      <Values rows={plain} declared={declared} label="Fields" />
      {managed.length > 0 && (
        <section>
          <h3>Kept by adjoin</h3>
          <Values rows={managed} declared={declared} label="Aggregates and copied fields" />
        </section>
      )}
    </>
  );
}

function Values({
  rows,
  declared,
  label,
}: {
  rows: [string, Json][];
  declared: Map<string, Field>;
  label: string;
}) {
  if (!rows.length) return null;
  return (
    <dl class="fields" aria-label={label}>
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt title={declared.get(name)?.type}>{name}</dt>
          <dd>
            <bdi>{valueText(value)}</bdi>
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Keys({ keys }: { keys: [string, string] }) {
  const table = model.value!.definition;
  return (
    <section>
      <h3>Stored at</h3>
      <dl class="fields keys">
        <div>
          <dt>{table.partition}</dt>
          <dd>
            <code>{keys[0]}</code>
          </dd>
        </div>
        {table.sort && (
          <div>
            <dt>{table.sort}</dt>
            <dd>
              <code>{keys[1]}</code>
            </dd>
          </div>
        )}
      </dl>
    </section>
  );
}
