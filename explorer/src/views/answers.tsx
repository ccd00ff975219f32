// What a query found and took: results, requests, and the code for it.
import { useEffect, useState } from "preact/hooks";
import type { Cost, EdgeInfo, Json, NodeInfo } from "../api";
import { Code } from "../copying";
import { costText, count, cut, dollars, idOf, units, valueText } from "../format";
import { scene } from "../graph/scene";
import { Dot } from "../graph/view";
import { asked, selection, view } from "../state";

interface Requested {
  round: number;
  operation: string;
  index: string | null;
  key: string;
  filtered: boolean;
  items: number | null;
  rcu: number;
  wcu: number;
  dollars: number;
  boto3: string | null;
}

export type Result = {
  handle: string | null;
  class: string;
  title?: string;
  source?: string;
  target?: string;
  fields: Record<string, Json>;
  path?: NodeInfo[];
  edges?: EdgeInfo[];
};

export interface Answer {
  code: string;
  results: Result[] | null;
  next: string | null;
  requests: Requested[];
  notes: string[];
  cost: Cost;
}

async function draw(results: Result[]): Promise<void> {
  const nodes: NodeInfo[] = [];
  const edges: EdgeInfo[] = [];
  for (const each of results) {
    if (each.path) {
      nodes.push(...each.path);
      edges.push(...(each.edges ?? []));
    } else if (each.source) edges.push(each as EdgeInfo);
    else if (each.handle) nodes.push(each as NodeInfo);
  }
  const drawn = new Set(nodes.map((node) => node.handle));
  const needed = [...new Set(edges.flatMap((edge) => [edge.source, edge.target]))].filter((each) => !drawn.has(each));
  if (needed.length) {
    const answer = await asked<{ nodes: NodeInfo[]; cost: Cost }>("nodes", { handles: needed.slice(0, 200) });
    nodes.push(...answer.nodes);
  }
  scene.add(nodes, edges);
  scene.mark(nodes, edges);
  selection.set(null);
  view.set("graph");
}

export function Answers({
  answer,
  results,
  more,
}: {
  answer: Answer;
  results: Result[];
  more: (run: boolean, after: string | null) => Promise<void>;
}) {
  const [shown, setShown] = useState(0);
  useEffect(() => setShown(0), [answer]);
  const names = [...new Set(results.flatMap((each) => Object.keys(each.fields)))];
  const edges = results.filter((each) => each.source).length;
  return (
    <>
      {answer.results && (
        <section class="panel">
          <div class="panel-head">
            <h2>{count(results.length, "result")}</h2>
            {results.length > 0 && (
              <button type="button" onClick={() => void draw(results).catch(() => undefined)}>
                Draw in the graph
              </button>
            )}
          </div>
          {results.length > 0 && (
            <div class="wide" tabIndex={0} role="region" aria-label="Results">
              <table class="plain">
                <thead>
                  <tr>
                    <th scope="col">{edges === 0 ? "Node" : edges === results.length ? "Edge" : "Result"}</th>
                    {names.map((name) => (
                      <th key={name} scope="col">
                        {name}
                      </th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {results.map((each, at) => (
                    <tr key={`${each.handle} ${at}`} aria-selected={each.handle === selection.value?.handle}>
                      <th scope="row">
                        <Named result={each} />
                      </th>
                      {names.map((name) => (
                        <td key={name}>
                          <bdi>{name in each.fields ? cut(valueText(each.fields[name]!), 80) : ""}</bdi>
                        </td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
          {answer.next && (
            <p>
              <button type="button" onClick={() => void more(true, answer.next)}>
                Next page
              </button>
            </p>
          )}
        </section>
      )}
      <section class="panel">
        <div class="panel-head">
          <h2>{answer.results ? "What it took" : "What it would take, at least"}</h2>
          <small>{costText(answer.cost)}</small>
        </div>
        <div class="wide" tabIndex={0} role="region" aria-label="Requests">
          <table class="plain requests stacked">
            <thead>
              <tr>
                <th scope="col">Round</th>
                <th scope="col">Request</th>
                <th scope="col">Of</th>
                <th scope="col">Key condition</th>
                <th scope="col" class="number">
                  Units
                </th>
                <th scope="col" class="number">
                  Price
                </th>
              </tr>
            </thead>
            <tbody>
              {answer.requests.map((each, at) => (
                <tr key={at} aria-selected={at === shown}>
                  <td data-label="Round">{each.round}</td>
                  <td data-label="Request">
                    <button type="button" class="link" aria-pressed={at === shown} onClick={() => setShown(at)}>
                      {each.operation}
                    </button>
                  </td>
                  <td data-label="Of">{each.index ?? "table"}</td>
                  <td data-label="Key condition">
                    <code>{each.key}</code>
                    {each.filtered && <small> then a filter</small>}
                  </td>
                  <td class="number" data-label="Units">
                    {each.wcu ? `${units(each.wcu)} WCU` : `${units(each.rcu)} RCU`}
                  </td>
                  <td class="number" data-label="Price">
                    {dollars(each.dollars)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {answer.notes.map((note) => (
          <p class="hint" key={note}>
            {note}
          </p>
        ))}
      </section>
      <section class="panel two">
        <Code label="Python" text={answer.code} />
        {answer.requests[shown] && (
          <Code
            label={`boto3, request ${shown + 1}`}
            text={answer.requests[shown]!.boto3 ?? "# pip install 'adjoin[explorer]' shows the call of boto3"}
          />
        )}
      </section>
    </>
  );
}

function Named({ result }: { result: Result }) {
  const { handle } = result;
  if (!handle) return <small>no class</small>;
  const end = (each: string) => cut(idOf(each), 30);
  return (
    <button
      type="button"
      class="link"
      onClick={() => selection.set({ kind: result.source ? "edge" : "node", handle })}
    >
      {result.source ? (
        <>
          <small>{result.class}</small> <bdi>{end(result.source)}</bdi> → <bdi>{end(result.target!)}</bdi>
        </>
      ) : result.path ? (
        result.path.map((node, at) => (
          <span key={at}>
            {at > 0 && " → "}
            <bdi>{cut(node.title, 24)}</bdi>
          </span>
        ))
      ) : (
        <>
          <Dot name={result.class} /> <bdi>{cut(result.title ?? "", 48)}</bdi>
        </>
      )}
    </button>
  );
}
