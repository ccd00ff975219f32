// What several views share: the model, the selection, the cost of the last answer, the theme.
import { useEffect, useState } from "preact/hooks";
import { ask, type ClassInfo, type Cost, type Model, Problem } from "./api";

/** A value that components follow. */
export class Cell<T> {
  private listeners = new Set<(value: T) => void>();
  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (Object.is(value, this.current)) return;
    this.current = value;
    for (const tell of [...this.listeners]) tell(value);
  }

  follow(tell: (value: T) => void): () => void {
    this.listeners.add(tell);
    return () => this.listeners.delete(tell);
  }

  use(): T {
    const [value, set] = useState(this.current);
    useEffect(() => {
      set(this.current);
      return this.follow((next) => set(() => next));
    }, []);
    return value;
  }
}

export const VIEWS = ["graph", "table", "query", "design", "health"] as const;
export type View = (typeof VIEWS)[number];

export interface Selection {
  kind: "node" | "edge";
  handle: string;
}

export const model = new Cell<Model | null>(null);
export const view = new Cell<View>("graph");
export const selection = new Cell<Selection | null>(null);
export const cost = new Cell<Cost | null>(null);
export const problem = new Cell<string | null>(null);
/** What a screen reader is told. */
export const said = new Cell("");
/** Grows with each write, so that views read again. */
export const written = new Cell(0);

/** Asks, and tells the cost or the problem where everybody sees it. */
export async function asked<T extends { cost?: Cost }>(name: string, body: Record<string, unknown> = {}): Promise<T> {
  try {
    const answer = await ask<T>(name, body);
    if (answer.cost) cost.set(answer.cost);
    problem.set(null);
    return answer;
  } catch (error) {
    problem.set(error instanceof Problem ? error.message : String(error));
    throw error;
  }
}

export function classOf(name: string): ClassInfo | undefined {
  return model.value?.classes.find((each) => each.name === name);
}

export function nodeClasses(): ClassInfo[] {
  return model.value?.classes.filter((each) => each.kind !== "edge") ?? [];
}

export function edgeClasses(): ClassInfo[] {
  return model.value?.classes.filter((each) => each.kind === "edge") ?? [];
}

// --- the address ---------------------------------------------------------------------------------

function read(): void {
  const given = new URLSearchParams(location.hash.slice(1));
  const named = given.get("view") as View | null;
  if (named && VIEWS.includes(named)) view.set(named);
  const handle = given.get("select");
  const kind = given.get("kind") === "edge" ? "edge" : "node";
  if (handle && handle !== selection.value?.handle) selection.set({ kind, handle });
}

function write(): void {
  const now = new URLSearchParams({ view: view.value });
  if (selection.value) {
    now.set("kind", selection.value.kind);
    now.set("select", selection.value.handle);
  }
  history.replaceState(null, "", `${location.pathname}${location.search}#${now}`);
}

export function followAddress(): void {
  read();
  view.follow(write);
  selection.follow(write);
  addEventListener("hashchange", read);
}

// --- dark and light ------------------------------------------------------------------------------

export type Theme = "light" | "dark";
const dark = matchMedia("(prefers-color-scheme: dark)");

function kept(): Theme | null {
  const found = localStorage.getItem("adjoin-theme");
  return found === "light" || found === "dark" ? found : null;
}

export const theme = new Cell<Theme>(kept() ?? (dark.matches ? "dark" : "light"));

export function followTheme(): void {
  const show = () => {
    document.documentElement.dataset.theme = theme.value;
  };
  show();
  theme.follow(show);
  dark.addEventListener("change", () => {
    if (!kept()) theme.set(dark.matches ? "dark" : "light");
  });
}

export function chooseTheme(chosen: Theme): void {
  localStorage.setItem("adjoin-theme", chosen);
  theme.set(chosen);
}
