// Keeps what opens the server. On one's own machine that is the session's word against forged requests: a browser sends the session's cookie to the
// servers of all ports of 127.0.0.1, other users' included; what localStorage keeps belongs to this port alone. All tabs share the word, as they share
// the cookie. On a cluster it is a bearer token, which is kept for its tab alone.

const WORD = "paceline.csrf";
const TOKEN = "paceline.token";

const unstored = new Map<string, string>(); // where nothing can be stored: the session then lasts as long as the page

function read(storage: () => Storage, key: string): string {
  try {
    return storage().getItem(key) ?? unstored.get(key) ?? "";
  } catch {
    return unstored.get(key) ?? "";
  }
}

function keep(storage: () => Storage, key: string, value: string): void {
  try {
    storage().setItem(key, value);
    unstored.delete(key);
  } catch {
    unstored.set(key, value);
  }
}

function forget(storage: () => Storage, key: string): void {
  unstored.delete(key);
  try {
    storage().removeItem(key);
  } catch {
    // There is none in a storage that is switched off.
  }
}

const local = () => localStorage;
const ofTab = () => sessionStorage;

// Empty: there is none.
export const token = (): string => read(ofTab, TOKEN);
const word = (): string => read(local, WORD);
export const secret = (): string => token() || word();

export function keepWord(value: string): void {
  forget(ofTab, TOKEN);
  keep(local, WORD, value);
}

export const keepToken = (value: string): void => keep(ofTab, TOKEN, value);

// A secret that a server refused. One that another tab got since then stays.
export function forgetSecret(refused: string): void {
  if (token() === refused) forget(ofTab, TOKEN);
  else if (word() === refused) forget(local, WORD);
}

// The headers by which a request is known.
export function credentials(): Record<string, string> {
  return token() === "" ? { "X-Paceline-CSRF": word() } : { Authorization: `Bearer ${token()}` };
}

// The address of a stream, which has parameters, with the word: an EventSource sends no header of ours.
export function withWord(url: string): string {
  return `${url}&csrf=${encodeURIComponent(word())}`;
}
