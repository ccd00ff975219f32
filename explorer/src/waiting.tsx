// What stands in a view before its answer has come, and when it does not come.
import { problem } from "./state";

export function Waiting({ read }: { read: () => void }) {
  const fault = problem.use();
  if (!fault) return <p class="hint padded">Reading a sample…</p>;
  return (
    <div class="padded">
      <p class="warning">{fault}</p>
      <button type="button" onClick={read}>
        Try again
      </button>
    </div>
  );
}
