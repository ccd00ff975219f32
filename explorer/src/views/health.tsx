// The Health view: how much there is of what, how it is connected, and how maintenance stands.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Cost } from "../api";
import { ago, bytes, count, cut } from "../format";
import { Dot } from "../graph/view";
import { asked, classOf, selection, view, written } from "../state";
import { Waiting } from "../waiting";

interface Maintenance {
  problem?: string;
  lag: number | null;
  at: number | null;
  changes: number;
  rate: number;
  set_aside: number;
  rebuild_due: unknown;
  rebuilt_at: number | null;
  verified_at: number | null;
  uncounted: string[];
}

interface Health {
  items: number;
  bytes: number;
  created: number | null;
  stream: boolean;
  sample: { items: number; own: number; others: number; whole: boolean };
  classes: { name: string; sampled: number; estimate: number | null }[];
  degrees: { class: string; bins: { from: number; to: number; nodes: number }[] }[];
  largest: { partition: string; items: number; bytes: number; handle: string | null }[];
  shards: { of: string; shards: number }[];
  maintenance: Maintenance;
  cost: Cost;
}

export function HealthView() {
  const [found, setFound] = useState<Health | null>(null);
  const round = written.use();
  const read = () => void asked<Health>("health").then(setFound, () => undefined);
  useEffect(read, [round]);
  if (!found) return <Waiting read={read} />;
  const { sample } = found;
  return (
    <div class="scroll stack">
      <p class="hint">
        {sample.whole
          ? `All ${count(sample.items, "item")} of the table were read, and ${count(sample.own)} of adjoin’s own.`
          : `Of ${count(found.items, "item")}, ${count(sample.items)} were read in many places of the table.`}
        {sample.others > 0 && ` No class explains ${count(sample.others)} of them.`}
      </p>
      <div class="cards">
        <Card title="Items" value={count(found.items)} told={bytes(found.bytes)} />
        <Lag found={found.maintenance} />
        <Card
          title="Set aside"
          value={count(found.maintenance.set_aside ?? 0)}
          told="edges that no rule can count"
          isBad={found.maintenance.set_aside > 0}
        />
        <Card
          title="Last verified"
          value={since(found.maintenance.verified_at)}
          told={`rebuilt ${since(found.maintenance.rebuilt_at)}`}
        />
      </div>
      {found.maintenance.problem && <p class="warning">{found.maintenance.problem}</p>}
      {found.maintenance.uncounted?.length > 0 && (
        <p class="warning">Not yet counted as declared: {found.maintenance.uncounted.join(", ")}. Run adjoin rebuild.</p>
      )}
      {Boolean(found.maintenance.rebuild_due) && (
        <p class="warning">Changes may have been missed. Run adjoin rebuild, or adjoin verify --repair.</p>
      )}
      <div class="pair">
        <Classes found={found} />
        <Degrees found={found} />
      </div>
      {found.largest.length > 0 && <Largest found={found} />}
      {found.stream && <Hottest />}
      {found.shards.length > 0 && (
        <section class="panel">
          <h2>Shards</h2>
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Key attribute or indexed field</th>
                <th scope="col" class="number">
                Shards
              </th>
              </tr>
            </thead>
            <tbody>
              {found.shards.map((each) => (
                <tr key={each.of}>
                  <th scope="row">{each.of}</th>
                  <td class="number">{count(each.shards)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </div>
  );
}

function since(at: number | null | undefined): string {
  return at ? `${ago(Date.now() / 1000 - at)} ago` : "never";
}

function Card({ title, value, told, isBad }: { title: string; value: string; told: string; isBad?: boolean }) {
  return (
    <section class={isBad ? "card bad" : "card"}>
      <h2>{title}</h2>
      <p class="value">{value}</p>
      <small>{told}</small>
    </section>
  );
}

function Lag({ found }: { found: Maintenance }) {
  const lag = found.lag === null || found.lag === undefined ? "unknown" : found.lag < 1 ? "none" : ago(found.lag);
  const told = found.at ? `maintained ${since(found.at)}` : "no maintainer has run";
  return <Card title="Lag of maintenance" value={lag} told={told} isBad={(found.lag ?? 0) > 300} />;
}

/** A bar whose length is a share of the longest. */
function Bar({ share }: { share: number }) {
  const bar = useRef<HTMLSpanElement>(null);
  useEffect(() => bar.current?.style.setProperty("width", `${Math.max(share * 100, share > 0 ? 1 : 0)}%`));
  return (
    <span class="track" aria-hidden="true">
      <span class="fill" ref={bar} />
    </span>
  );
}

function Classes({ found }: { found: Health }) {
  const [exact, setExact] = useState<Record<string, number>>({});
  const numberOf = (each: Health["classes"][number]) => exact[each.name] ?? each.estimate ?? each.sampled;
  const most = Math.max(1, ...found.classes.map(numberOf));
  const whole = found.sample.whole;
  const countAll = async (name: string) => {
    const answer = await asked<{ count: number; cost: Cost }>("count", { model: name });
    setExact((before) => ({ ...before, [name]: answer.count }));
  };
  return (
    <section class="panel">
      <h2>Classes</h2>
      <table class="plain bars">
        <tbody>
          {found.classes.map((each) => {
            const number = numberOf(each);
            const sign = each.estimate === null ? "at least" : "≈";
            const isExact = whole || each.name in exact;
            return (
              <tr key={each.name}>
                <th scope="row">
                  {classOf(each.name)?.kind !== "edge" && <Dot name={each.name} />} {each.name}
                </th>
                <td class="bar">
                  <Bar share={number / most} />
                </td>
                <td class="number">{isExact ? count(number) : `${sign} ${count(number)}`}</td>
                {!whole && (
                  <td>
                    {!isExact && (
                      <button
                        type="button"
                        title="Reads the whole table"
                        onClick={() => void countAll(each.name).catch(() => undefined)}
                      >
                        count
                      </button>
                    )}
                  </td>
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

function Degrees({ found }: { found: Health }) {
  const [name, setName] = useState(found.degrees[0]?.class ?? "");
  const shown = found.degrees.find((each) => each.class === name) ?? found.degrees[0];
  if (!shown) return null;
  const most = Math.max(1, ...shown.bins.map((bin) => bin.nodes));
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>Edges of a node</h2>
        <select aria-label="Class of edges" value={shown.class} onChange={(event) => setName(event.currentTarget.value)}>
          {found.degrees.map((each) => (
            <option key={each.class}>{each.class}</option>
          ))}
        </select>
      </div>
      <table class="plain bars">
        <tbody>
          {shown.bins.map((bin) => (
            <tr key={bin.from}>
              <th scope="row">{bin.from === bin.to ? count(bin.from) : `${count(bin.from)} – ${count(bin.to)}`}</th>
              <td class="bar">
                <Bar share={bin.nodes / most} />
              </td>
              <td class="number">{count(bin.nodes, "node")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface Written {
  changes: number;
  since: number | null;
  until: number | null;
  all: boolean;
  partitions: { index: string | null; partition: string; writes: number }[];
  cost: Cost;
}

/** Which partitions are written most; the stream is read when it is asked for. */
function Hottest() {
  const [found, setFound] = useState<Written | null>(null);
  const [isBusy, setBusy] = useState(false);
  const read = async (more: boolean) => {
    setBusy(true);
    try {
      setFound(await asked<Written>("hottest", { more }));
    } catch {
      // The problem is told at the bottom of the page.
    }
    setBusy(false);
  };
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>Hottest partitions</h2>
        <button type="button" disabled={isBusy} onClick={() => void read(false)}>
          Read the change stream
        </button>
      </div>
      {found && (
        <>
          <p class="hint">
            {found.since
              ? `Of ${count(found.changes, "change")} from ${since(found.since)} to ${since(found.until)}.`
              : "The change stream has no changes."}{" "}
            {!found.all && (
              <button type="button" disabled={isBusy} onClick={() => void read(true)}>
                Read on
              </button>
            )}
          </p>
          <div class="wide" tabIndex={0} role="region" aria-label="Hottest partitions">
            <table class="plain">
              <thead>
                <tr>
                  <th scope="col">Partition</th>
                  <th scope="col">Of</th>
                  <th scope="col" class="number">
                Writes
              </th>
                </tr>
              </thead>
              <tbody>
                {found.partitions.map((each) => (
                  <tr key={`${each.index} ${each.partition}`}>
                    <th scope="row">
                      <code>{cut(each.partition, 80)}</code>
                    </th>
                    <td>{each.index ?? "table"}</td>
                    <td class="number">{count(each.writes)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </section>
  );
}

function Largest({ found }: { found: Health }) {
  return (
    <section class="panel">
      <h2>Largest collections {found.sample.whole ? "" : "in the sample"}</h2>
      <div class="wide" tabIndex={0} role="region" aria-label="Largest collections">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Partition</th>
              <th scope="col" class="number">
                Items
              </th>
              <th scope="col" class="number">
                Size
              </th>
            </tr>
          </thead>
          <tbody>
            {found.largest.map((each) => (
              <tr key={each.partition}>
                <th scope="row">
                  {each.handle ? (
                    <button
                      type="button"
                      class="link"
                      onClick={() => {
                        selection.set({ kind: "node", handle: each.handle! });
                        view.set("table");
                      }}
                    >
                      <code>{cut(each.partition, 80)}</code>
                    </button>
                  ) : (
                    <code>{cut(each.partition, 80)}</code>
                  )}
                </th>
                <td class="number">{count(each.items)}</td>
                <td class="number">{bytes(each.bytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
