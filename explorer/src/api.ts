// What the page asks its server, and the shapes of the answers. The token in the address goes into a header.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export interface Cost {
  requests: number;
  rounds: number;
  rcu: number;
  wcu: number;
  dollars: number;
}

export interface Field {
  name: string;
  type: string;
  attribute?: string;
  required?: boolean;
  indexed?: boolean;
  unique?: boolean;
  managed?: boolean;
  version?: boolean;
  id?: boolean;
  options?: string[];
}

export interface ClassInfo {
  name: string;
  label: string;
  doc: string;
  kind: "node" | "child" | "edge";
  fields: Field[];
  // of nodes and children
  id?: { name: string; type: string }[];
  parent?: string | null;
  head?: string;
  // of edges
  source?: string[];
  target?: string[];
  symmetric?: boolean;
  order?: string | null;
  key?: string[];
}

export interface IndexInfo {
  name: string;
  partition: string[];
  sort: string[];
  projection: string;
  local: boolean;
}

export interface Model {
  table: string;
  location: string;
  writable: boolean;
  tenant: string | null;
  inferred: { source: string; read: number; explained: number; notes: string[] } | null;
  definition: { partition: string; sort: string | null; indexes: IndexInfo[] };
  classes: ClassInfo[];
}

export interface NodeInfo {
  handle: string;
  class: string;
  id: string;
  title: string;
  fields: Record<string, Json>;
  missing?: boolean;
}

export interface EdgeInfo {
  handle: string;
  class: string;
  source: string;
  target: string;
  symmetric: boolean;
  fields: Record<string, Json>;
  child?: boolean;
}

export type Direction = "out" | "into" | "children" | "parent";

export interface Lane {
  class: string;
  direction: Direction;
}

export interface LanePage extends Lane {
  next: string | null;
  error?: string;
}

export interface Neighbours {
  nodes: NodeInfo[];
  edges: EdgeInfo[];
  lanes: LanePage[];
  cost: Cost;
}

export interface NodeAnswer {
  node: NodeInfo;
  lanes: Lane[];
  key: [string, string];
  partition: Record<string, Json>[];
  cost: Cost;
}

export interface EdgeAnswer {
  edge: EdgeInfo | null;
  key: [string, string];
  partition: Record<string, Json>[];
  cost: Cost;
}

/** What went wrong, in the words of adjoin. */
export class Problem extends Error {
  constructor(
    readonly kind: string,
    message: string,
  ) {
    super(message);
  }
}

const token = new URLSearchParams(location.search).get("token") ?? "";

export async function ask<T>(name: string, asked: Record<string, unknown> = {}): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`api/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Adjoin-Token": token },
      body: JSON.stringify(asked),
    });
  } catch {
    throw new Problem("Unreachable", "the explorer does not answer; is the command still running?");
  }
  if (response.status === 403) throw new Problem("Refused", await response.text());
  const answer = await response.json();
  if (!response.ok) throw new Problem(answer.error.name, answer.error.message);
  return answer as T;
}
