// The node at which a path begins; the selected one is where it ends.
import { Cell } from "../state";

export const picked = new Cell<string | null>(null);
