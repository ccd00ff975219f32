// Adding, changing and deleting, where the explorer was started with --write.
import { useEffect, useRef, useState } from "preact/hooks";
import { type ClassInfo, type Cost, type EdgeInfo, type Field, type Json, type NodeInfo, Problem } from "./api";
import { valueText } from "./format";
import { picked } from "./graph/picking";
import { scene } from "./graph/scene";
import { Icon } from "./icons";
import { asked, Cell, classOf, edgeClasses, nodeClasses, problem, said, selection, written } from "./state";

type Editing =
  | { kind: "add"; class: string }
  | { kind: "change"; of: "node" | "edge"; handle: string; class: string; values: Record<string, Json> }
  | { kind: "connect"; from: NodeInfo };

export const editing = new Cell<Editing | null>(null);

interface Saved {
  node?: NodeInfo;
  edge?: EdgeInfo;
  problems?: Record<string, string>;
  cost?: Cost;
}

function textOf(value: Json | undefined): string {
  return value === null || value === undefined ? "" : valueText(value);
}

/** The fields of a class that a person gives; adjoin keeps the others. */
function given(info: ClassInfo, isNew: boolean): Field[] {
  const keys = new Set(info.key ?? []);
  return info.fields.filter((field) => !field.managed && !field.version && (isNew || (!field.id && !keys.has(field.name))));
}

export function Editor() {
  const now = editing.use();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (now) dialog.current?.showModal();
  }, [now]);
  if (!now) return null;
  const close = () => editing.set(null);
  return (
    <dialog ref={dialog} class="editor" onClose={close} aria-labelledby="editor-title">
      {now.kind === "connect" ? <Connect from={now.from} close={close} /> : <Form now={now} close={close} />}
    </dialog>
  );
}

/** After a write: what is drawn and what is selected is what is stored. */
function done(answer: Saved): void {
  if (answer.node) {
    scene.add([answer.node], []);
    selection.set({ kind: "node", handle: answer.node.handle });
  }
  if (answer.edge) {
    scene.add([], [answer.edge]);
    selection.set({ kind: "edge", handle: answer.edge.handle });
  }
  written.set(written.value + 1);
  said.set("Saved");
}

/** Sends a form; what is wrong with it is shown where it is. */
function useSaving(close: () => void) {
  const [problems, setProblems] = useState<Record<string, string>>({});
  const save = async (name: string, body: Record<string, unknown>) => {
    try {
      const answer = await asked<Saved>(name, body);
      if (answer.problems) {
        setProblems(answer.problems);
        return;
      }
      close();
      done(answer);
    } catch (error) {
      // It is told in the form, and not at the bottom of the page too.
      problem.set(null);
      setProblems({ "": error instanceof Problem ? error.message : String(error) });
    }
  };
  return { problems, save };
}

function Form({ now, close }: { now: Extract<Editing, { kind: "add" | "change" }>; close: () => void }) {
  const [name, setName] = useState(now.class);
  const info = classOf(name)!;
  const isNew = now.kind === "add";
  const before = isNew ? {} : now.values;
  const [texts, setTexts] = useState<Record<string, string>>(() =>
    Object.fromEntries(Object.entries(before).map(([each, value]) => [each, textOf(value)])),
  );
  const { problems, save } = useSaving(close);
  const fields = given(info, isNew);
  const parents = isNew && info.kind === "child" ? [{ name: "parent", type: info.parent ?? "", required: true }] : [];
  const submit = (event: Event) => {
    event.preventDefault();
    const values: Record<string, string | null> = {};
    for (const field of [...parents, ...fields]) {
      const text = texts[field.name] ?? "";
      if (!isNew && text === textOf(before[field.name])) continue;
      // What is left empty in a new node is not given; its class says whether it may be.
      if (text !== "" || (!isNew && field.required)) values[field.name] = text;
      else if (!isNew) values[field.name] = null;
    }
    if (isNew) return void save("add", { model: name, values });
    if (!Object.keys(values).length) return close();
    return void save("change", { handle: now.handle, values });
  };
  return (
    <form onSubmit={submit} noValidate>
      <h2 id="editor-title">{isNew ? "Add a node" : `Change this ${name}`}</h2>
      {isNew && (
        <label>
          Class
          <select value={name} onChange={(event) => setName(event.currentTarget.value)}>
            {nodeClasses().map((each) => (
              <option key={each.name}>{each.name}</option>
            ))}
          </select>
        </label>
      )}
      {[...parents, ...fields].map((field) => (
        <Input
          key={field.name}
          field={field}
          value={texts[field.name] ?? ""}
          problem={problems[field.name]}
          set={(text) => setTexts({ ...texts, [field.name]: text })}
        />
      ))}
      <Buttons problem={problems[""]} close={close} label={isNew ? "Add" : "Save"} />
    </form>
  );
}

function Connect({ from, close }: { from: NodeInfo; close: () => void }) {
  const head = classOf(from.class)?.head ?? from.class;
  const classes = edgeClasses().filter((each) => each.source!.includes(head) || each.target!.includes(head));
  const [name, setName] = useState(classes[0]?.name ?? "");
  const info = classOf(name);
  const leaves = info?.source?.includes(head) ?? true;
  const ends = (leaves ? info?.target : info?.source) ?? [];
  const start = picked.value ?? "";
  const [end, setEnd] = useState("");
  const [ids, setIds] = useState<string[]>([]);
  const far = ends.includes(end) ? end : (ends[0] ?? "");
  const isPicked = start !== from.handle && ends.includes(start.split("/", 1)[0] ?? "");
  const [usesPicked, setUsesPicked] = useState(isPicked);
  const [texts, setTexts] = useState<Record<string, string>>({});
  const { problems, save } = useSaving(close);
  if (!info) return <p>No class of edges joins a {from.class}.</p>;
  const parts = classOf(far)?.id ?? [];
  const submit = (event: Event) => {
    event.preventDefault();
    const typed = `${far}/${JSON.stringify(parts.length === 1 ? (ids[0] ?? "") : parts.map((_, at) => ids[at] ?? ""))}`;
    const other = isPicked && usesPicked ? start : typed;
    const values = Object.fromEntries(
      given(info, true)
        .filter((field) => (texts[field.name] ?? "") !== "")
        .map((field) => [field.name, texts[field.name] ?? ""]),
    );
    void save("connect", {
      model: name,
      source: leaves ? from.handle : other,
      target: leaves ? other : from.handle,
      values,
    });
  };
  return (
    <form onSubmit={submit} noValidate>
      <h2 id="editor-title">
        Connect <bdi>{from.title}</bdi>
      </h2>
      <label>
        Edge
        <select value={name} onChange={(event) => setName(event.currentTarget.value)}>
          {classes.map((each) => (
            <option key={each.name}>{each.name}</option>
          ))}
        </select>
      </label>
      {isPicked && (
        <label class="check">
          <input
            type="checkbox"
            checked={usesPicked}
            onChange={(event) => setUsesPicked(event.currentTarget.checked)}
          />
          {leaves ? "to" : "from"} the node that was picked, <bdi>{scene.dots.get(start)?.info.title ?? start}</bdi>
        </label>
      )}
      {!(isPicked && usesPicked) && (
        <>
          {ends.length > 1 && (
            <label>
              {leaves ? "To" : "From"}
              <select value={far} onChange={(event) => setEnd(event.currentTarget.value)}>
                {ends.map((each) => (
                  <option key={each}>{each}</option>
                ))}
              </select>
            </label>
          )}
          {parts.map((part, at) => (
            <label key={part.name}>
              <span>
                {leaves ? "To" : "From"} {far}, {part.name} <small>{part.type}</small>
              </span>
              <input
                type="text"
                dir="auto"
                value={ids[at] ?? ""}
                onInput={(event) => {
                  const next = [...ids];
                  next[at] = event.currentTarget.value;
                  setIds(next);
                }}
              />
            </label>
          ))}
        </>
      )}
      {given(info, true).map((field) => (
        <Input
          key={field.name}
          field={field}
          value={texts[field.name] ?? ""}
          problem={problems[field.name]}
          set={(text) => setTexts({ ...texts, [field.name]: text })}
        />
      ))}
      <Buttons problem={problems[""]} close={close} label="Connect" />
    </form>
  );
}

function Input({
  field,
  value,
  problem,
  set,
}: {
  field: Pick<Field, "name" | "type" | "required" | "options">;
  value: string;
  problem: string | undefined;
  set: (text: string) => void;
}) {
  const told = `problem-${field.name}`;
  const shared = {
    id: `field-${field.name}`,
    "aria-invalid": problem ? true : undefined,
    "aria-describedby": problem ? told : undefined,
  };
  const options = field.type === "bool" ? ["true", "false"] : field.options;
  return (
    <div class="input">
      <label for={shared.id}>
        {field.name} <small>{field.type}</small>
      </label>
      {options ? (
        <select {...shared} value={value} onChange={(event) => set(event.currentTarget.value)}>
          <option value="" />
          {options.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      ) : value.length > 60 ? (
        <textarea {...shared} dir="auto" rows={3} value={value} onInput={(event) => set(event.currentTarget.value)} />
      ) : (
        <input {...shared} type="text" dir="auto" value={value} onInput={(event) => set(event.currentTarget.value)} />
      )}
      {problem && (
        <p id={told} class="warning">
          {problem}
        </p>
      )}
    </div>
  );
}

function Buttons({ problem, close, label }: { problem: string | undefined; close: () => void; label: string }) {
  return (
    <>
      {problem && (
        <p class="warning" role="alert">
          {problem}
        </p>
      )}
      <div class="row end">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="submit" class="primary">
          {label}
        </button>
      </div>
    </>
  );
}

/** The buttons for what is selected. */
export function EditButtons({ node, edge }: { node?: NodeInfo; edge?: EdgeInfo }) {
  const what = (node ?? edge)!;
  const kind = node ? "node" : "edge";
  const [isSure, setSure] = useState(false);
  useEffect(() => setSure(false), [what.handle]);
  const remove = async () => {
    await asked("delete", { handle: what.handle, kind });
    selection.set(null);
    scene.remove([what.handle]);
    written.set(written.value + 1);
    said.set("Deleted");
  };
  return (
    <section>
      <h3>Edit</h3>
      <div class="row">
        {!node?.missing && (
          <button
            type="button"
            onClick={() =>
              editing.set({ kind: "change", of: kind, handle: what.handle, class: what.class, values: what.fields })
            }
          >
            <Icon name="edit" /> Change
          </button>
        )}
        {node && !node.missing && (
          <button type="button" onClick={() => editing.set({ kind: "connect", from: node })}>
            <Icon name="graph" /> Connect
          </button>
        )}
        {isSure ? (
          <button type="button" class="danger" onClick={() => void remove().catch(() => undefined)}>
            {node ? "Delete it with all its edges" : "Delete this edge"}
          </button>
        ) : (
          <button type="button" onClick={() => setSure(true)}>
            <Icon name="trash" /> Delete
          </button>
        )}
      </div>
    </section>
  );
}
