// Code that can be copied.
import { useState } from "preact/hooks";
import { Icon } from "./icons";

export function Code({ label, text }: { label: string; text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <figure class="code">
      <figcaption>
        {label}
        <button type="button" class="quiet" aria-label={`Copy: ${label}`} onClick={() => void copy()}>
          <Icon name="copy" /> {isCopied ? "copied" : "copy"}
        </button>
      </figcaption>
      <pre tabIndex={0} aria-label={label}>
        {text}
      </pre>
    </figure>
  );
}
