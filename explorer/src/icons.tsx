// Line drawings for buttons; each button has a label of its own.
const PATHS = {
  search: "M11 11l4 4M12.5 7.5a5 5 0 1 1-10 0 5 5 0 0 1 10 0z",
  plus: "M9 3v12M3 9h12",
  add: "M9 1.5a7.5 7.5 0 1 0 0 15 7.5 7.5 0 0 0 0-15zM9 5.5v7M5.5 9h7",
  minus: "M3 9h12",
  fit: "M3 7V3h4M11 3h4v4M15 11v4h-4M7 15H3v-4",
  clear: "M4 5h10M7 5V3h4v2M5.5 5l.7 10h5.6l.7-10",
  arrange: "M14.5 6.5A6 6 0 0 0 4 5.5M3.5 2.5v3.5H7M3.5 11.5a6 6 0 0 0 10.5 1M14.5 15.5V12H11",
  close: "M4 4l10 10M14 4L4 14",
  sun: "M9 12.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM9 1v2M9 15v2M1 9h2M15 9h2M3.3 3.3l1.4 1.4M13.3 13.3l1.4 1.4M3.3 14.7l1.4-1.4M13.3 4.7l1.4-1.4",
  moon: "M15 10.5A6.5 6.5 0 0 1 7.5 3a6.5 6.5 0 1 0 7.5 7.5z",
  copy: "M6 6V3h9v9h-3M3 6h9v9H3z",
  graph: "M5 6.5l6 5M12.5 6l-1 5M4 7a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM13 6a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM11 15a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  table: "M2.5 3.5h13v11h-13zM2.5 7.5h13M7 7.5v7M2.5 11h13",
  query: "M3 4h12M5 8h8M7 12h4",
  design: "M3 3h5v5H3zM10 10h5v5h-5zM8 5.5h4.5V10",
  health: "M2 9h3l2-5 3.5 10L13 9h3",
  edit: "M3 15l1-4 8-8 3 3-8 8z",
  trash: "M4 5h10M7 5V3h4v2M5.5 5l.7 10h5.6l.7-10M7.5 8v4M10.5 8v4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      class="icon"
      width="18"
      height="18"
      viewBox="0 0 18 18"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
