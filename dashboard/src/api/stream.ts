// Server-sent events that come back: the browser mends a broken stream by itself, with Last-Event-ID; where it gives up (an answer that is no
// stream), this opens another one, later and later. The server is seen as gone after a while without any word. A tab that nobody sees lets go of
// its stream after a while: a browser has few connections to one server, and all its tabs share them.

import { TokenSource, type Source } from "./token_source.ts";
import { token, withWord } from "./word.ts";

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 15_000;
const SILENCE = 40_000; // the server pings every 15 s
const UNSEEN = 60_000;

export type Handlers = Record<string, (data: unknown) => void>;

export interface Stream {
  close(): void;
}

export interface StreamOptions {
  handlers: Handlers;
  onState(connected: boolean): void;
  onRefused(): void; // no stream came: a session may have ended
}

class LiveStream implements Stream {
  readonly #url: string;
  readonly #options: StreamOptions;
  #source: Source | null = null;
  #lastId = "";
  #wait = FIRST_WAIT;
  #again: ReturnType<typeof setTimeout> | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #unseen: ReturnType<typeof setTimeout> | undefined;

  constructor(url: string, options: StreamOptions) {
    this.#url = url;
    this.#options = options;
    document.addEventListener("visibilitychange", this.#onVisible);
    this.#open();
  }

  close(): void {
    document.removeEventListener("visibilitychange", this.#onVisible);
    clearTimeout(this.#unseen);
    this.#drop();
  }

  #drop(): void {
    clearTimeout(this.#again);
    clearTimeout(this.#silence);
    this.#source?.close();
    this.#source = null;
  }

  readonly #onVisible = () => {
    clearTimeout(this.#unseen);
    if (document.hidden) this.#unseen = setTimeout(() => this.#drop(), UNSEEN);
    else if (this.#source === null) this.#open();
  };

  readonly #heard = () => {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#retry(), SILENCE);
  };

  #retry(): void {
    this.#drop();
    this.#options.onState(false);
    this.#again = setTimeout(() => this.#open(), this.#wait);
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT);
  }

  #open(): void {
    this.#drop();
    const source: Source = token() === "" ? new EventSource(withWord(this.#url)) : new TokenSource(this.#url, token(), this.#lastId);
    this.#source = source;
    this.#heard();
    source.onopen = () => {
      this.#wait = FIRST_WAIT;
      this.#heard();
      this.#options.onState(true);
    };
    source.onerror = () => {
      this.#options.onState(false);
      if (source.readyState !== EventSource.CLOSED) return;
      this.#options.onRefused();
      this.#retry();
    };
    source.addEventListener("ping", this.#heard);
    for (const [name, handle] of Object.entries(this.#options.handlers)) {
      source.addEventListener(name, (event) => {
        this.#heard();
        this.#lastId = (event as MessageEvent<string>).lastEventId || this.#lastId;
        handle(JSON.parse((event as MessageEvent<string>).data));
      });
    }
  }
}

export function openStream(url: string, options: StreamOptions): Stream {
  return new LiveStream(url, options);
}
