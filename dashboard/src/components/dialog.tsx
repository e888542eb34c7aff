// A question before something is done. The browser's own <dialog> keeps the focus inside and gives it back.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api/client.ts";
import { errorFrom, toast } from "../state/app.ts";

export interface Question {
  title: string;
  text: ComponentChildren;
  confirm: string; // the button's word
  danger?: boolean;
  number?: { label: string; value: number; least: number; most: number };
  typed?: { label: string; value: string }; // has to be typed as it stands
  run(number: number): Promise<string>;
}

export function Dialog({ question, close }: { question: Question; close: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const [number, setNumber] = useState(question.number?.value ?? 0);
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  useEffect(() => box.current?.showModal(), []);
  const range = question.number;
  const ready =
    (!range || (Number.isInteger(number) && number >= range.least && number <= range.most && number !== range.value)) &&
    (!question.typed || typed === question.typed.value);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!ready || busy) return;
    setBusy(true);
    try {
      toast("done", await question.run(number));
      box.current?.close();
    } catch (failure) {
      setError(errorFrom(failure));
      setBusy(false);
    }
  };
  return (
    <dialog
      ref={box}
      class="dialog"
      aria-labelledby="dialog-title"
      onClose={close}
      onClick={(event) => {
        if (event.target === box.current) box.current?.close();
      }}
    >
      <form onSubmit={(event) => void submit(event)}>
        <h2 id="dialog-title">{question.title}</h2>
        <div class="dialog-text">{question.text}</div>
        {range && (
          <label class="field">
            {range.label}
            <input
              type="number"
              value={number}
              min={range.least}
              max={range.most}
              autofocus
              onInput={(event) => setNumber(event.currentTarget.valueAsNumber)}
            />
            <span class="dim">
              {range.least} to {range.most}; now {range.value}
            </span>
          </label>
        )}
        {question.typed && (
          <label class="field">
            <span>
              {question.typed.label} <code>{question.typed.value}</code>
            </span>
            <input
              type="text"
              value={typed}
              autocomplete="off"
              spellcheck={false}
              autofocus
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
        )}
        {error && (
          <div class="inline-error" role="alert">
            <p>{error.message}</p>
            {error.help && <p class="dim">{error.help}</p>}
          </div>
        )}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={() => box.current?.close()}>
            Cancel
          </button>
          <button type="submit" class={`button ${question.danger ? "danger" : "primary"}`} disabled={!ready || busy}>
            {question.confirm}
          </button>
        </div>
      </form>
    </dialog>
  );
}
