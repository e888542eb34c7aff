// Asks for the token: the one-time token of a machine's own dashboard, or a bearer token of a cluster.

import { useState } from "preact/hooks";
import type { ApiError } from "../api/client.ts";
import { enter } from "../state/app.ts";

export function SignIn({ error }: { error: ApiError | null }) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (token.trim() === "") return;
    setBusy(true);
    await enter(token.trim());
    setBusy(false);
  };
  return (
    <section class="signin" aria-labelledby="signin-title">
      <h1 id="signin-title">Sign in</h1>
      <p class="dim">
        On your own machine, open the address that <code>paceline dashboard</code> prints: it holds a token that works once. On a cluster,
        paste a token of yours, as <code>kubectl create token NAME</code> prints it.
      </p>
      {error && (
        <div class="inline-error" role="alert">
          <p>{error.message}</p>
          {error.help && <p class="dim">{error.help}</p>}
        </div>
      )}
      <form onSubmit={(event) => void submit(event)}>
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={token}
          autofocus
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <button type="submit" class="button primary" disabled={busy || token.trim() === ""}>
          Sign in
        </button>
      </form>
    </section>
  );
}
