// The Table view: items as DynamoDB holds them, collection by collection, in the table and in each index.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Cost, EdgeAnswer, Json, NodeAnswer } from "../api";
import { bytes, count, cut } from "../format";
import { Details } from "../details";
import { Dot } from "../graph/view";
import { asked, model, problem, selection, written } from "../state";
import { Waiting } from "../waiting";

export type Attribute = Record<string, Json>;
export type Item = Record<string, Attribute>;

interface Row {
  item: Item;
  size: number;
  own: boolean;
  handle: string | null;
  class: string | null;
  kind?: "node" | "edge";
  problem?: string;
}

interface Items {
  keys: string[];
  items: Row[];
  next: Item | null;
  cost: Cost;
}

/** An attribute as people read it; what is not text says its type. */
export function attributeText(value: Attribute | undefined): string {
  const [found] = Object.entries(value ?? {});
  if (!found) return "";
  const [tag, inner] = found;
  switch (tag) {
    case "S":
    case "N":
      return String(inner);
    case "NULL":
      return "null";
    case "BOOL":
      return String(inner);
    case "B":
      return `binary ${String(inner)}`;
    case "L":
      return `[${(inner as Attribute[]).map(attributeText).join(", ")}]`;
    case "M":
      return `{${Object.entries(inner as Item)
        .map(([name, each]) => `${name}: ${attributeText(each)}`)
        .join(", ")}}`;
    default:
      return `{${(inner as string[]).join(", ")}}`;
  }
}

export function TableView() {
  const known = model.value!.definition;
  const [index, setIndex] = useState<string>("");
  const [partition, setPartition] = useState<Attribute[] | null>(null);
  const [own, setOwn] = useState(false);
  const [rows, setRows] = useState<Row[]>([]);
  const [next, setNext] = useState<Item | null>(null);
  const [isBusy, setBusy] = useState(true);
  const chosen = selection.use();
  const round = written.use();
  const fault = problem.use();

  const read = async (after: Item | null) => {
    setBusy(true);
    try {
      const answer = await asked<Items>("items", { index: index || null, partition, after, own });
      setRows((before) => (after ? [...before, ...answer.items] : answer.items));
      setNext(answer.next);
    } catch {
      if (!after) setRows([]);
    }
    setBusy(false);
  };
  useEffect(() => void read(null), [index, partition, own, round]);

  /** The collection in which the selected node or edge is stored. */
  const showCollection = async () => {
    if (!chosen) return;
    const answer = await asked<NodeAnswer | EdgeAnswer>(chosen.kind, { handle: chosen.handle });
    setIndex("");
    setPartition(answer.partition);
  };
  // What was selected in another view is shown here too.
  useEffect(() => {
    if (chosen) void showCollection().catch(() => undefined);
  }, []);

  const shown = known.indexes.find((each) => each.name === index);
  const partitions = shown ? shown.partition : [known.partition];
  const sorts = shown ? shown.sort : known.sort ? [known.sort] : [];
  return (
    <div class={chosen ? "with-details table-view" : "table-view"}>
      <div class="scroll">
        <div class="bar">
          <div class="tabs" role="group" aria-label="Table or index">
            <button type="button" aria-pressed={index === ""} onClick={() => choose("")}>
              Table
            </button>
            {known.indexes.map((each) => (
              <button key={each.name} type="button" aria-pressed={index === each.name} onClick={() => choose(each.name)}>
                {each.name}
              </button>
            ))}
          </div>
          {partition && (
            <span class="chip">
              {partitions.join(" + ")} = <code>{cut(partition.map(attributeText).join(" + "), 40)}</code>
              <button type="button" class="quiet" onClick={() => setPartition(null)}>
                show all
              </button>
            </span>
          )}
          {chosen && !partition && (
            <button type="button" onClick={() => void showCollection().catch(() => undefined)}>
              Collection of the selected
            </button>
          )}
          <label class="check">
            <input type="checkbox" checked={own} onChange={(event) => setOwn(event.currentTarget.checked)} />
            what adjoin adds
          </label>
        </div>
        <Collections rows={rows} partitions={partitions} sorts={sorts} open={(values) => setPartition(values)} />
        {!rows.length &&
          (isBusy || fault ? (
            <Waiting read={() => void read(null)} what="items" isBusy={isBusy} />
          ) : (
            <p class="hint padded">No items.</p>
          ))}
        <p class="more-row">
          {next ? (
            <button type="button" disabled={isBusy} onClick={() => void read(next)}>
              More items
            </button>
          ) : (
            rows.length > 0 && <small>{count(rows.length, "item")}, all that there are here</small>
          )}
        </p>
      </div>
      {chosen && <Details />}
    </div>
  );

  function choose(name: string): void {
    setRows([]);
    setPartition(null);
    setIndex(name);
  }
}

function Collections({
  rows,
  partitions,
  sorts,
  open,
}: {
  rows: Row[];
  partitions: string[];
  sorts: string[];
  open: (values: Attribute[]) => void;
}) {
  const groups: { key: string; values: Attribute[]; rows: Row[] }[] = [];
  for (const row of rows) {
    const values = partitions.map((name) => row.item[name] ?? {});
    const key = JSON.stringify(values);
    const last = groups[groups.length - 1];
    if (last?.key === key) last.rows.push(row);
    else groups.push({ key, values, rows: [row] });
  }
  const keys = new Set([...partitions, ...sorts]);
  return (
    <table class="items">
      <thead>
        <tr>
          <th scope="col">{partitions.join(" + ")}</th>
          {sorts.length > 0 && <th scope="col">{sorts.join(" + ")}</th>}
          <th scope="col">Class</th>
          <th scope="col">Attributes</th>
        </tr>
      </thead>
      {groups.map((group, at) => (
        <tbody key={`${group.key} ${at}`}>
          {group.rows.map((row, number) => (
            <ItemRow key={JSON.stringify(row.item)} row={row} sorts={sorts} keys={keys}>
              {number === 0 && (
                <th scope="rowgroup" rowSpan={group.rows.length} class="partition">
                  <div>
                    <button type="button" class="link" title="Show this collection" onClick={() => open(group.values)}>
                      <code>{cut(group.values.map(attributeText).join(" + "), 120)}</code>
                    </button>
                    <small>{count(group.rows.length, "item")}</small>
                  </div>
                </th>
              )}
            </ItemRow>
          ))}
        </tbody>
      ))}
    </table>
  );
}

function ItemRow({
  row,
  sorts,
  keys,
  children,
}: {
  row: Row;
  sorts: string[];
  keys: Set<string>;
  children: preact.ComponentChildren;
}) {
  const chosen = selection.use();
  const isChosen = row.handle !== null && row.handle === chosen?.handle;
  const line = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (isChosen) line.current?.scrollIntoView({ block: "nearest" });
  }, [isChosen]);
  const select = () => {
    if (row.handle) selection.set({ kind: row.kind ?? "node", handle: row.handle });
  };
  const others = Object.entries(row.item).filter(([name]) => !keys.has(name));
  return (
    <tr ref={line} class={row.own ? "own" : undefined} aria-selected={isChosen}>
      {children}
      {sorts.length > 0 && (
        <td class="sort">
          <code>{cut(sorts.map((name) => attributeText(row.item[name])).join(" + "), 120)}</code>
        </td>
      )}
      <td class="class">
        {row.handle ? (
          <button type="button" class="link" aria-pressed={isChosen} onClick={select}>
            {row.kind === "node" && <Dot name={row.class!} />} {row.class}
          </button>
        ) : (
          <small title={row.problem}>{row.own ? "adjoin’s own" : (row.class ?? "no class")}</small>
        )}
      </td>
      <td>
        <dl class="attributes">
          <div class="size">
            <dt>size</dt>
            <dd>{bytes(row.size)}</dd>
          </div>
          {others.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <bdi>{cut(attributeText(value), 160)}</bdi>
              </dd>
            </div>
          ))}
        </dl>
      </td>
    </tr>
  );
}
