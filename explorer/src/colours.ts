// A colour for each class of nodes. People with any colour vision can tell the first eight apart, and both themes have
// the same order, so a class keeps its hue.
import { nodeClasses, theme } from "./state";

const LIGHT = ["#2563eb", "#c2410c", "#0f766e", "#a21caf", "#a16207", "#4338ca", "#be123c", "#4d7c0f", "#0e7490", "#6d28d9"];
const DARK = ["#7aa2ff", "#ff9f6b", "#4fd1c1", "#e58cf0", "#e6c14c", "#a7a3ff", "#ff8ba0", "#a8d65c", "#5fd0ea", "#c3a3ff"];

const known = new Map<string, string>();
theme.follow(() => known.clear());

export function colourOf(name: string): string {
  let colour = known.get(name);
  if (colour === undefined) {
    const classes = nodeClasses();
    const found = classes.find((each) => each.name === name);
    const at = classes.findIndex((each) => each.name === (found?.head ?? name));
    const palette = theme.value === "dark" ? DARK : LIGHT;
    colour = palette[(at < 0 ? 0 : at) % palette.length] ?? "#888";
    if (classes.length) known.set(name, colour);
  }
  return colour;
}
