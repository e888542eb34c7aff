// Keeps the session's word against forged requests. A browser sends the session's cookie to the servers of all ports of 127.0.0.1, other users' included;
// what localStorage keeps belongs to this port alone. All tabs share the word, as they share the cookie.

const KEY = "paceline.csrf";

let unstored = ""; // the word where nothing can be stored: the session then lasts as long as the page

// Empty: there is none.
export function word(): string {
  try {
    return localStorage.getItem(KEY) ?? unstored;
  } catch {
    return unstored;
  }
}

export function keepWord(value: string): void {
  try {
    localStorage.setItem(KEY, value);
    unstored = "";
  } catch {
    unstored = value;
  }
}

// A word that a server refused. One that another tab got since then stays.
export function forgetWord(refused: string): void {
  if (word() !== refused) return;
  unstored = "";
  try {
    localStorage.removeItem(KEY);
  } catch {
    // There is none in a storage that is switched off.
  }
}

// The address of a stream, which has parameters, with the word: an EventSource sends no header of ours.
export function withWord(url: string): string {
  return `${url}&csrf=${encodeURIComponent(word())}`;
}
