// The frame of the page: which view is shown, and what all views have.
import { type ComponentType, render } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import type { Model } from "./api";
import { Code } from "./copying";
import { Editor } from "./editing";
import { count, costText } from "./format";
import { GraphView } from "./graph/view";
import { Icon, type IconName } from "./icons";
import { asked, chooseTheme, cost, followAddress, followTheme, model, problem, said, theme, type View, view } from "./state";
import { DesignView } from "./views/design";
import { HealthView } from "./views/health";
import { QueryView } from "./views/query";
import { TableView } from "./views/table";

const SHOWN: { name: View; title: string; icon: IconName; view: ComponentType }[] = [
  { name: "graph", title: "Graph", icon: "graph", view: GraphView },
  { name: "table", title: "Table", icon: "table", view: TableView },
  { name: "query", title: "Query", icon: "query", view: QueryView },
  { name: "design", title: "Design", icon: "design", view: DesignView },
  { name: "health", title: "Health", icon: "health", view: HealthView },
];

function App() {
  const known = model.use();
  const chosen = view.use();
  const [fault, setFault] = useState("");
  useEffect(() => {
    asked<Model & { cost?: undefined }>("model").then(
      (found) => {
        model.set(found);
        document.title = `${found.table} · adjoin explorer`;
      },
      (error) => setFault(String(error.message ?? error)),
    );
  }, []);
  if (fault) return <p class="fault">{fault}</p>;
  if (!known) return <p class="fault">Reading the table…</p>;
  const Shown = SHOWN.find((each) => each.name === chosen)?.view ?? GraphView;
  return (
    <>
      <Header known={known} chosen={chosen} />
      <main id="view" key={chosen}>
        <Shown />
      </main>
      <Status />
      <Editor />
      <p class="unseen" role="status" aria-live="polite">
        {said.use()}
      </p>
    </>
  );
}

function Header({ known, chosen }: { known: Model; chosen: View }) {
  const now = theme.use();
  const [isTold, setTold] = useState(false);
  return (
    <header class="top">
      <h1>
        <span class="brand">adjoin</span>
        <bdi class="table-name">{known.table}</bdi>
      </h1>
      <nav aria-label="Views">
        {SHOWN.map((each) => (
          <a
            key={each.name}
            href={`#view=${each.name}`}
            aria-current={each.name === chosen ? "page" : undefined}
            onClick={(event) => {
              event.preventDefault();
              view.set(each.name);
            }}
          >
            <Icon name={each.icon} />
            <span>{each.title}</span>
          </a>
        ))}
      </nav>
      <div class="top-end">
        {known.inferred && (
          <button type="button" class="badge" aria-expanded={isTold} onClick={() => setTold(!isTold)}>
            inferred classes
          </button>
        )}
        <span class={known.writable ? "badge writes" : "badge"}>{known.writable ? "writable" : "read-only"}</span>
        <button
          type="button"
          class="quiet"
          aria-label={now === "dark" ? "Light theme" : "Dark theme"}
          onClick={() => chooseTheme(now === "dark" ? "light" : "dark")}
        >
          <Icon name={now === "dark" ? "sun" : "moon"} />
        </button>
      </div>
      {isTold && known.inferred && <Inferred known={known} close={() => setTold(false)} />}
    </header>
  );
}

function Inferred({ known, close }: { known: Model; close: () => void }) {
  const found = known.inferred!;
  useLayoutEffect(() => {
    const escape = (event: KeyboardEvent) => {
      if (event.key === "Escape") close();
    };
    addEventListener("keydown", escape);
    return () => removeEventListener("keydown", escape);
  }, []);
  return (
    <section class="popover" aria-label="Inferred classes">
      <p>
        The classes were inferred from {count(found.read, "item")}; they explain {count(found.explained)} of them. Give
        your own with <code>--models</code>.
      </p>
      {found.notes.length > 0 && (
        <ul>
          {found.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
      <Code label="The program" text={found.source} />
      <button type="button" onClick={close}>
        Close
      </button>
    </section>
  );
}

function Status() {
  const now = cost.use();
  const fault = problem.use();
  return (
    <footer class="status">
      {fault ? (
        <p class="warning" role="alert">
          {fault}
        </p>
      ) : (
        <p title="What the last answer took, at on-demand prices">{now ? costText(now) : ""}</p>
      )}
    </footer>
  );
}

followTheme();
followAddress();
render(<App />, document.getElementById("root")!);
