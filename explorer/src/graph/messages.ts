// What the page and the worker that places nodes say to each other. Nodes go by their number.

export type ToWorker =
  | { kind: "graph"; version: number; places: Float32Array; radii: Float32Array; pairs: Uint32Array; alpha: number }
  | { kind: "drag"; node: number; x: number | null; y: number | null };

export interface FromWorker {
  version: number;
  places: Float32Array;
  settled: boolean;
}
