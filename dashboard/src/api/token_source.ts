// A stream of server-sent events that is opened with a bearer token, which a browser's own EventSource can't send. It ends with its connection: who
// opens it again tells the last id.

export interface Source {
  onopen: ((event: Event) => void) | null;
  onerror: ((event: Event) => void) | null;
  readonly readyState: number;
  addEventListener(name: string, handle: (event: Event) => void): void;
  close(): void;
}

export class TokenSource extends EventTarget implements Source {
  onopen: ((event: Event) => void) | null = null;
  onerror: ((event: Event) => void) | null = null;
  readyState: number = EventSource.CONNECTING;
  readonly #stop = new AbortController();

  constructor(url: string, token: string, lastId: string) {
    super();
    void this.#read(url, { Authorization: `Bearer ${token}`, ...(lastId === "" ? {} : { "Last-Event-ID": lastId }) });
  }

  close(): void {
    this.readyState = EventSource.CLOSED;
    this.#stop.abort();
  }

  async #read(url: string, headers: Record<string, string>): Promise<void> {
    try {
      const response = await fetch(url, { headers, cache: "no-store", signal: this.#stop.signal });
      if (response.ok && response.body) {
        this.readyState = EventSource.OPEN;
        this.onopen?.(new Event("open"));
        await this.#take(response.body.pipeThrough(new TextDecoderStream()).getReader());
      }
    } catch {
      // It broke off.
    }
    if (this.#stop.signal.aborted) return;
    this.readyState = EventSource.CLOSED;
    this.onerror?.(new Event("error"));
  }

  async #take(reader: ReadableStreamDefaultReader<string>): Promise<void> {
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      blocks.forEach((block) => this.#tell(block));
    }
  }

  #tell(block: string): void {
    const fields = new Map(block.split("\n").map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)]));
    const data = fields.get("data");
    if (data === undefined || this.readyState === EventSource.CLOSED) return;
    this.dispatchEvent(new MessageEvent(fields.get("event") ?? "message", { data, lastEventId: fields.get("id") ?? "" }));
  }
}
