// The Design view: which class lies where, which access pattern uses which index, and what a load would cost.
import { Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import { bytes, count, dollars, pieces, units } from "../format";
import { Dot } from "../graph/view";
import { asked, Cell, classOf, model } from "../state";
import { Waiting } from "../waiting";

interface Place {
  index: string | null;
  keys: Record<string, string>;
}

interface Pattern {
  class: string;
  verb: string;
  code: string;
  problem?: string;
  requests: number;
  rounds: number;
  rcu: number;
  wcu: number;
  kept: number;
  index: string | null;
  operation: string;
  key: string;
  notes: string[];
}

interface Design {
  prices: { region: string; as_of: string; million_reads: number; million_writes: number; gigabyte_month: number };
  items: number;
  bytes: number;
  classes: { name: string; size: number; places: Place[]; copies: Kept[]; claims: Kept[] }[];
  patterns: Pattern[];
  without: string[];
  cost?: undefined;
}

interface Kept {
  field: string;
  places: Place[];
}

const MONTH = 30 * 24 * 3600;
/** Calls per second by the position of a slider: nothing, and then from 0.1 to 10,000. */
const RATES = [0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];
const load = new Cell<Record<string, number>>({});

export function DesignView() {
  const [found, setFound] = useState<Design | null>(null);
  const read = () => void asked<Design>("design").then(setFound, () => undefined);
  useEffect(read, []);
  if (!found) return <Waiting read={read} />;
  return (
    <div class="scroll stack">
      <Keys found={found} />
      <Costs found={found} />
    </div>
  );
}

function Template({ text }: { text: string }) {
  // What stands for a value is set apart from what is written as it is.
  return (
    <code>
      {text.split(/(\{[^}]*\})/).map((part, at) =>
        part.startsWith("{") ? (
          <var key={at}>{part}</var>
        ) : (
          <Broken key={at} text={part} />
        ),
      )}
    </code>
  );
}

/** A text that breaks behind the signs of keys and of code, and nowhere else. */
function Broken({ text }: { text: string }) {
  return (
    <>
      {pieces(text).map((piece, at) => (
        <Fragment key={at}>
          {at > 0 && <wbr />}
          {piece}
        </Fragment>
      ))}
    </>
  );
}

function Keys({ found }: { found: Design }) {
  const known = model.value!.definition;
  const places = [null, ...known.indexes.map((each) => each.name)];
  const cell = (each: Place[], index: string | null) => {
    const place = each.find((one) => one.index === index);
    if (!place) return <td key={index ?? ""} class="void" aria-label="not there" />;
    return (
      <td key={index ?? ""} data-label={index ?? "Table"}>
        {Object.entries(place.keys).map(([name, text]) => (
          <div class="key" key={name}>
            <small>{name}</small> <Template text={text} />
          </div>
        ))}
      </td>
    );
  };
  return (
    <section class="panel">
      <h2>Keys</h2>
      <div class="wide" tabIndex={0} role="region" aria-label="Keys of each class">
        <table class="plain keys-table stacked">
          <thead>
            <tr>
              <th scope="col">Class</th>
              {places.map((name) => (
                <th scope="col" key={name ?? ""}>
                  {name ?? "Table"}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {found.classes.map((each) => (
              <>
                <tr key={each.name}>
                  <th scope="row">
                    <Name name={each.name} />
                    {each.size > 0 && <small> {bytes(each.size)}</small>}
                  </th>
                  {places.map((name) => cell(each.places, name))}
                </tr>
                {[...each.copies, ...each.claims].map((kept) => (
                  <tr key={`${each.name} ${kept.field}`} class="beside">
                    <th scope="row">
                      <small>
                        {each.copies.includes(kept) ? "index copy for" : "claim to"} {kept.field}
                      </small>
                    </th>
                    {places.map((name) => cell(kept.places, name))}
                  </tr>
                ))}
              </>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Name({ name }: { name: string }) {
  const known = classOf(name);
  if (known?.kind === "edge")
    return (
      <span>
        {name}{" "}
        <small>
          {known.source!.join(" | ")} {known.symmetric ? "—" : "→"} {known.target!.join(" | ")}
        </small>
      </span>
    );
  return (
    <span>
      <Dot name={name} /> {name}
    </span>
  );
}

const MANY = new Set(["out", "into", "collection", "children", "find"]);

/** The units of one call: what is explained, or what so many results of this size take. */
function readUnits(pattern: Pattern, results: number, size: number): number {
  if (!MANY.has(pattern.verb)) return pattern.rcu;
  return Math.max(pattern.rcu, Math.ceil((results * size) / 4096) / 2);
}

function Costs({ found }: { found: Design }) {
  const now = load.use();
  const [results, setResults] = useState(20);
  const set = (name: string, at: number) => load.set({ ...load.value, [name]: at });
  const size = (name: string) => found.classes.find((each) => each.name === name)?.size || 256;
  const rate = (pattern: Pattern) => RATES[now[pattern.code] ?? 0] ?? 0;
  const price = (pattern: Pattern) => {
    const calls = rate(pattern) * MONTH;
    const read = readUnits(pattern, results, size(pattern.class)) * found.prices.million_reads;
    return (calls * (read + (pattern.wcu + pattern.kept) * found.prices.million_writes)) / 1e6;
  };
  const patterns = found.patterns.filter((each) => !each.problem);
  const storage = (found.bytes / 1e9) * found.prices.gigabyte_month;
  const sum = patterns.reduce((total, each) => total + price(each), 0) + storage;
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>Access patterns, and what a load costs</h2>
        <output class="total" aria-live="polite">
          {dollars(sum)} <small>per month</small>
        </output>
      </div>
      <p class="hint">
        On demand in {found.prices.region}, prices of {found.prices.as_of}. {count(found.items, "item")} and{" "}
        {bytes(found.bytes)} cost {dollars(storage)} per month to store.
        {found.without.length > 0 && ` No item of ${found.without.join(", ")} was found to try.`}
      </p>
      <label class="slider">
        Results of a query
        <input
          type="range"
          min={1}
          max={200}
          value={results}
          onInput={(event) => setResults(event.currentTarget.valueAsNumber)}
        />
        <span>{results}</span>
      </label>
      <div class="wide" tabIndex={0} role="region" aria-label="Access patterns">
        <table class="plain patterns stacked">
          <thead>
            <tr>
              <th scope="col">Access pattern</th>
              <th scope="col">Index</th>
              <th scope="col">Key condition</th>
              <th scope="col" class="number">
                A call
              </th>
              <th scope="col">Calls per second</th>
              <th scope="col" class="number">
                A month
              </th>
            </tr>
          </thead>
          <tbody>
            {found.patterns.map((each) => (
              <tr key={each.code}>
                <th scope="row">
                  <code>
                    <Broken text={each.code} />
                  </code>
                </th>
                {each.problem ? (
                  <td colSpan={5} class="hint">
                    {each.problem}
                  </td>
                ) : (
                  <>
                    <td data-label="Index">{each.index ?? "table"}</td>
                    <td data-label="Key condition">
                      <code>{each.key}</code>
                      {each.requests > 1 && <small> and {each.requests - 1} more</small>}
                    </td>
                    <td class="number" data-label="A call" title={each.notes.join("\n")}>
                      {each.wcu
                        ? `${units(each.wcu + each.kept)} WCU`
                        : `${units(readUnits(each, results, size(each.class)))} RCU`}
                    </td>
                    <td class="rate" data-label="Calls per second">
                      <input
                        type="range"
                        aria-label={`Calls per second of ${each.code}`}
                        aria-valuetext={String(rate(each))}
                        min={0}
                        max={RATES.length - 1}
                        value={now[each.code] ?? 0}
                        onInput={(event) => set(each.code, event.currentTarget.valueAsNumber)}
                      />
                      <span>{count(rate(each))}</span>
                    </td>
                    <td class="number" data-label="A month">
                      {dollars(price(each))}
                    </td>
                  </>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
