// Values, numbers and prices as people read them.
import type { Cost, Json } from "./api";

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export function count(number: number, noun?: string): string {
  const text = whole.format(number);
  return noun === undefined ? text : `${text} ${noun}${number === 1 ? "" : "s"}`;
}

export function units(number: number): string {
  return short.format(number);
}

/** A price in dollars: small ones with as many digits as it takes. */
export function dollars(amount: number): string {
  if (amount === 0) return "$0";
  if (amount >= 0.01) return amount.toLocaleString("en", { style: "currency", currency: "USD" });
  const digits = Math.min(12, 1 - Math.floor(Math.log10(amount)));
  return `$${amount.toFixed(digits)}`;
}

export function bytes(number: number): string {
  const names = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (number >= 1000 && at < names.length - 1) {
    number /= 1000;
    at += 1;
  }
  return `${short.format(number)} ${names[at]}`;
}

export function costText(cost: Cost): string {
  const parts = [count(cost.requests, "request")];
  if (cost.rounds > 1 && cost.rounds !== cost.requests) parts.push(`${cost.rounds} rounds`);
  if (cost.rcu || !cost.wcu) parts.push(`${units(cost.rcu)} RCU`);
  if (cost.wcu) parts.push(`${units(cost.wcu)} WCU`);
  parts.push(dollars(cost.dollars));
  return parts.join(" · ");
}

export function valueText(value: Json): string {
  if (value === null) return "–";
  if (typeof value === "object" && !Array.isArray(value) && typeof value.bytes === "string") return value.bytes;
  if (typeof value === "string") return value;
  return JSON.stringify(value);
}

/** The id in the handle of a node, as people read it. */
export function idOf(handle: string): string {
  const id = JSON.parse(handle.slice(handle.indexOf("/") + 1)) as Json;
  return (Array.isArray(id) ? id : [id]).map(valueText).join(" · ");
}

/** A text with places where a line may end: behind the signs of keys and of code. */
export function pieces(text: string): string[] {
  return text.split(/(?<=[#(,.=])/);
}

/** A name that fits: one that has no spaces, such as a long number, tells most at both ends. */
export function shortened(text: string, most: number): string {
  const letters = [...text];
  if (letters.length <= most || /\s/.test(text)) return cut(text, most);
  const end = Math.floor(most / 3);
  return `${letters.slice(0, most - end - 1).join("")}…${letters.slice(-end).join("")}`;
}

/** A text in its first characters, where a whole one would not fit. */
export function cut(text: string, most = 40): string {
  const letters = [...text];
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
}

export function ago(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}
