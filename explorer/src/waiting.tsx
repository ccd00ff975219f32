// What stands in a view before its answer has come, and when it does not come.
import { problem } from "./state";

interface Reading {
  read: () => void;
  what?: string;
  /** Whether an answer is awaited now, so that the problem of an earlier one is not shown. */
  isBusy?: boolean;
}

export function Waiting({ read, what = "a sample", isBusy = false }: Reading) {
  const fault = problem.use();
  if (!fault || isBusy) return <p class="hint padded">Reading {what}…</p>;
  return (
    <div class="padded">
      <p class="warning">{fault}</p>
      <button type="button" onClick={read}>
        Try again
      </button>
    </div>
  );
}
