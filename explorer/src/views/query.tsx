// The Query view: any access pattern from a form that knows the classes.
import { useEffect, useState } from "preact/hooks";
import type { ClassInfo, Json } from "../api";
import { Details } from "../details";
import { count, valueText } from "../format";
import { scene } from "../graph/scene";
import { Icon } from "../icons";
import { asked, Cell, classOf, edgeClasses, model, nodeClasses, said, selection } from "../state";
import { type Answer, Answers, type Result } from "./answers";

type Verb = "get" | "out" | "into" | "collection" | "children" | "find" | "walk";

interface Comparison {
  field: string;
  operator: string;
  values: string[];
}

interface Step {
  direction: "out" | "into" | "both";
  class: string;
}

interface Form {
  verb: Verb;
  class: string;
  id: string[];
  edge: string;
  child: string;
  direction: "out" | "into";
  where: Comparison[];
  reverse: boolean;
  order: string;
  index: string;
  steps: Step[];
  distinct: boolean;
  limit: number;
}

const VERBS: [Verb, string][] = [
  ["get", "one node by its id"],
  ["out", "edges that leave a node"],
  ["into", "edges that arrive at a node"],
  ["collection", "a node with all its edges"],
  ["children", "children of a node"],
  ["find", "by an index"],
  ["walk", "several steps along edges"],
];
const OPERATORS: [string, string][] = [
  ["=", "="],
  ["<>", "≠"],
  ["<", "<"],
  ["<=", "≤"],
  [">", ">"],
  [">=", "≥"],
  ["begins_with", "begins with"],
  ["contains", "contains"],
  ["between", "between"],
  ["exists", "exists"],
];

/** The form outlives the view, so that one can look elsewhere and come back. */
const kept = new Cell<Form | null>(null);

function fresh(): Form {
  const first = nodeClasses()[0]?.name ?? "";
  return {
    verb: "collection",
    class: first,
    id: [],
    edge: "",
    child: "",
    direction: "out",
    where: [],
    reverse: false,
    order: "",
    index: "",
    steps: [],
    distinct: false,
    limit: 20,
  };
}

/** The classes of edges, and of children, that one can follow from nodes of a class. */
function leading(from: string[], direction: "out" | "into" | "both"): ClassInfo[] {
  const heads = from.map((name) => classOf(name)?.head ?? name);
  return edgeClasses().filter((each) => {
    const out = each.source!.some((name) => heads.includes(name));
    const into = each.target!.some((name) => heads.includes(name));
    return direction === "out" ? out : direction === "into" ? into || (each.symmetric && out) : out || into;
  });
}

function reached(from: string[], step: Step): string[] {
  const edge = classOf(step.class);
  if (!edge?.source) return from;
  const found = new Set<string>();
  if (step.direction !== "into" || edge.symmetric) for (const name of edge.target!) found.add(name);
  if (step.direction !== "out" || edge.symmetric) for (const name of edge.source!) found.add(name);
  return [...found];
}

export function QueryView() {
  const now = kept.use() ?? fresh();
  const set = (changes: Partial<Form>) => kept.set(settled({ ...now, ...changes }));
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [results, setResults] = useState<Result[]>([]);
  const [fault, setFault] = useState("");
  const chosen = selection.use();
  useEffect(() => {
    const named = selection.value;
    if (!kept.value) {
      const form = fresh();
      // Without a choice, a node that is drawn, so that the form can be run as it is.
      const handle = named?.kind === "node" ? named.handle : scene.firstOf(form.class);
      if (handle) Object.assign(form, fromHandle(handle));
      kept.set(settled(form));
    }
  }, []);

  const ask = async (run: boolean, after: string | null = null) => {
    try {
      const found = await asked<Answer>("query", { form: sent(now), after, run });
      setFault("");
      setAnswer(found);
      setResults((before) => (after ? [...before, ...(found.results ?? [])] : (found.results ?? [])));
      said.set(found.results ? count(found.results.length, "result") : "explained");
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
      setAnswer(null);
      setResults([]);
    }
  };
  return (
    <div class={chosen ? "with-details" : ""}>
      <div class="scroll columns">
        <form
          class="panel query-form"
          aria-label="Access pattern"
          onSubmit={(event) => {
            event.preventDefault();
            void ask(true);
          }}
        >
          <Choice label="What" value={now.verb} set={(verb) => set({ verb: verb as Verb })}>
            {VERBS.filter(([verb]) => verb !== "children" || nodeClasses().some((each) => each.kind === "child")).map(
              ([verb, told]) => (
                <option key={verb} value={verb}>{`${verb}: ${told}`}</option>
              ),
            )}
          </Choice>
          <Start now={now} set={set} />
          {(now.verb === "out" || now.verb === "into") && (
            <Choice label="Edges" value={now.edge} set={(edge) => set({ edge })}>
              {leading([now.class], now.verb).map((each) => (
                <option key={each.name}>{each.name}</option>
              ))}
            </Choice>
          )}
          {now.verb === "children" && (
            <Choice label="Children" value={now.child} set={(child) => set({ child })}>
              {nodeClasses()
                .filter((each) => each.parent === now.class)
                .map((each) => (
                  <option key={each.name}>{each.name}</option>
                ))}
            </Choice>
          )}
          {now.verb === "collection" && (
            <Choice label="Direction" value={now.direction} set={(direction) => set({ direction: direction as "out" })}>
              <option value="out">edges that leave it</option>
              <option value="into">edges that arrive at it</option>
            </Choice>
          )}
          {now.verb === "walk" && <Steps now={now} set={set} />}
          {["out", "into", "children", "find"].includes(now.verb) && <Where now={now} set={set} />}
          {now.verb === "find" && (
            <Choice label="Order" value={now.order} set={(order) => set({ order })}>
              <option value="">that of the index</option>
              {(classOf(now.class)?.fields ?? [])
                .filter((field) => field.indexed)
                .map((field) => (
                  <option key={field.name}>{field.name}</option>
                ))}
            </Choice>
          )}
          {now.verb === "find" && (
            <Choice label="Index" value={now.index} set={(index) => set({ index })}>
              <option value="">the one that narrows most</option>
              {model.value!.definition.indexes.map((each) => (
                <option key={each.name}>{each.name}</option>
              ))}
            </Choice>
          )}
          {["out", "into", "children", "find"].includes(now.verb) && (
            <label class="check">
              <input
                type="checkbox"
                checked={now.reverse}
                onChange={(event) => set({ reverse: event.currentTarget.checked })}
              />
              in the opposite order
            </label>
          )}
          {now.verb !== "get" && (
            <label>
              Results on a page
              <input
                type="number"
                min={1}
                max={200}
                value={now.limit}
                onInput={(event) => set({ limit: event.currentTarget.valueAsNumber || 20 })}
              />
            </label>
          )}
          <div class="row">
            <button type="submit" class="primary">
              Run
            </button>
            <button type="button" onClick={() => void ask(false)}>
              Explain only
            </button>
          </div>
          {fault && <p class="warning">{fault}</p>}
        </form>
        <div class="answers">{answer ? <Answers answer={answer} results={results} more={ask} /> : <Empty />}</div>
      </div>
      {chosen && <Details />}
    </div>
  );
}

function Empty() {
  return (
    <p class="hint padded">
      Choose an access pattern. The answer comes with each request, its index and key condition, its price, and the code
      for it.
    </p>
  );
}

/** What a form sends: only what its verb needs. */
function sent(form: Form): Record<string, unknown> {
  const all: Record<string, unknown> = { ...form };
  if (form.verb === "find") delete all.id;
  return all;
}

function fromHandle(handle: string): Partial<Form> {
  const at = handle.indexOf("/");
  const id = JSON.parse(handle.slice(at + 1)) as Json;
  return { class: handle.slice(0, at), id: (Array.isArray(id) ? id : [id]).map((each) => valueText(each as Json)) };
}

/** A form whose choices fit each other. */
function settled(form: Form): Form {
  const isFind = form.verb === "find";
  const known = isFind ? model.value!.classes : nodeClasses();
  if (!known.some((each) => each.name === form.class)) form.class = known[0]?.name ?? "";
  const edges = form.verb === "out" || form.verb === "into" ? leading([form.class], form.verb) : [];
  if (edges.length && !edges.some((each) => each.name === form.edge)) form.edge = edges[0]!.name;
  const children = nodeClasses().filter((each) => each.parent === form.class);
  if (!children.some((each) => each.name === form.child)) form.child = children[0]?.name ?? "";
  if (form.verb === "walk" && !form.steps.length) {
    const first = leading([form.class], "out")[0] ?? leading([form.class], "into")[0];
    if (first) form.steps = [{ direction: first.source!.includes(form.class) ? "out" : "into", class: first.name }];
  }
  return form;
}

function Choice({
  label,
  value,
  set,
  children,
}: {
  label: string;
  value: string;
  set: (value: string) => void;
  children: preact.ComponentChildren;
}) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        {children}
      </select>
    </label>
  );
}

interface Part {
  now: Form;
  set: (changes: Partial<Form>) => void;
}

function Start({ now, set }: Part) {
  const known = now.verb === "find" ? model.value!.classes : nodeClasses();
  const parts = classOf(now.class)?.id ?? [];
  return (
    <>
      <Choice
        label={now.verb === "find" ? "Of" : "Node"}
        value={now.class}
        set={(name) => set({ class: name, id: [], steps: [], where: [], order: "" })}
      >
        {known.map((each) => (
          <option key={each.name}>{each.name}</option>
        ))}
      </Choice>
      {now.verb !== "find" &&
        parts.map((part, at) => (
          <label key={part.name}>
            <span>
              {part.name} <small>{part.type}</small>
            </span>
            <input
              type="text"
              dir="auto"
              value={now.id[at] ?? ""}
              onInput={(event) => {
                const id = parts.map((_, number) => now.id[number] ?? "");
                id[at] = event.currentTarget.value;
                set({ id });
              }}
            />
          </label>
        ))}
    </>
  );
}

function Steps({ now, set }: Part) {
  let here = [now.class];
  const starts = now.steps.map((step) => {
    const from = here;
    here = reached(here, step);
    return from;
  });
  const change = (at: number, changes: Partial<Step>) =>
    set({ steps: now.steps.map((step, number) => (number === at ? { ...step, ...changes } : step)) });
  const next = leading(here, "both")[0];
  return (
    <fieldset>
      <legend>Steps</legend>
      {now.steps.map((step, at) => (
        <div class="inline" key={at}>
          <select
            aria-label={`Direction of step ${at + 1}`}
            value={step.direction}
            onChange={(event) => change(at, { direction: event.currentTarget.value as Step["direction"] })}
          >
            <option>out</option>
            <option>into</option>
            <option>both</option>
          </select>
          <select
            aria-label={`Edges of step ${at + 1}`}
            value={step.class}
            onChange={(event) => change(at, { class: event.currentTarget.value })}
          >
            {leading(starts[at]!, "both").map((each) => (
              <option key={each.name}>{each.name}</option>
            ))}
          </select>
          <button
            type="button"
            class="quiet"
            aria-label={`Remove step ${at + 1}`}
            onClick={() => set({ steps: now.steps.filter((_, number) => number !== at) })}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
      {next && (
        <button
          type="button"
          onClick={() =>
            set({
              steps: [
                ...now.steps,
                { class: next.name, direction: next.source!.some((name) => here.includes(name)) ? "out" : "into" },
              ],
            })
          }
        >
          Add a step
        </button>
      )}
      <label class="check">
        <input
          type="checkbox"
          checked={now.distinct}
          onChange={(event) => set({ distinct: event.currentTarget.checked })}
        />
        each node once
      </label>
    </fieldset>
  );
}

function Where({ now, set }: Part) {
  const about = now.verb === "find" ? now.class : now.verb === "children" ? now.child : now.edge;
  const fields = classOf(about)?.fields ?? [];
  if (!fields.length) return null;
  const change = (at: number, changes: Partial<Comparison>) =>
    set({ where: now.where.map((row, number) => (number === at ? { ...row, ...changes } : row)) });
  const indexed = fields.find((field) => field.indexed) ?? fields[0]!;
  return (
    <fieldset>
      <legend>{now.verb === "find" ? "Where" : "Only where"}</legend>
      {now.where.map((row, at) => (
        <div class="inline" key={at}>
          <select
            aria-label={`Field of comparison ${at + 1}`}
            value={row.field}
            onChange={(event) => change(at, { field: event.currentTarget.value })}
          >
            {fields.map((field) => (
              <option key={field.name} value={field.name}>
                {field.name}
                {field.indexed ? " (indexed)" : ""}
              </option>
            ))}
          </select>
          <select
            aria-label={`Operator of comparison ${at + 1}`}
            value={row.operator}
            onChange={(event) => change(at, { operator: event.currentTarget.value })}
          >
            {OPERATORS.map(([name, told]) => (
              <option key={name} value={name}>
                {told}
              </option>
            ))}
          </select>
          <div class="inline values">
            {row.operator !== "exists" &&
              [0, ...(row.operator === "between" ? [1] : [])].map((number) => (
                <input
                  key={number}
                  type="text"
                  dir="auto"
                  aria-label={`Value ${number + 1} of comparison ${at + 1}`}
                  placeholder={fields.find((field) => field.name === row.field)?.type}
                  value={row.values[number] ?? ""}
                  onInput={(event) => {
                    const values = [...row.values];
                    values[number] = event.currentTarget.value;
                    change(at, { values });
                  }}
                />
              ))}
            <button
              type="button"
              class="quiet"
              aria-label={`Remove comparison ${at + 1}`}
              onClick={() => set({ where: now.where.filter((_, number) => number !== at) })}
            >
              <Icon name="close" />
            </button>
          </div>
        </div>
      ))}
      <button
        type="button"
        onClick={() => set({ where: [...now.where, { field: indexed.name, operator: "=", values: [""] }] })}
      >
        Add a comparison
      </button>
    </fieldset>
  );
}
