// A value that components watch. All that change before the next frame are drawn together in it.

import { useEffect, useState } from "preact/hooks";

export class Cell<T> {
  #value: T;
  readonly #watchers = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set value(next: T) {
    if (Object.is(next, this.#value)) return;
    this.#value = next;
    for (const watcher of [...this.#watchers]) watcher();
  }

  // Returns how to stop.
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }
}

export function useCell<T>(cell: Cell<T>): T {
  const [value, show] = useState(cell.value);
  useEffect(() => {
    show(cell.value);
    return cell.watch(() => show(cell.value));
  }, [cell]);
  return value;
}

// Runs `draw` once in the next frame, however often it is asked for; in a hidden tab when it is seen again.
export function oncePerFrame(draw: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}
