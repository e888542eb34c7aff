// The words of a YAML line by kind, for colours: good enough for what Paceline prints, and never wrong about the text itself.

export type TokenKind = "key" | "value" | "comment" | "mark" | "text";

export interface Token {
  kind: TokenKind;
  text: string;
}

export function yamlTokens(line: string): Token[] {
  if (/^\s*#/.test(line)) return [{ kind: "comment", text: line }];
  const match = /^(\s*(?:- )*)((?:"[^"]*"|'[^']*'|[^\s:#'"{}[\],][^:#]*?)):(\s.*|)$/.exec(line);
  if (!match) {
    const item = /^(\s*- )(.*)$/.exec(line);
    return item
      ? [
          { kind: "mark", text: item[1]! },
          { kind: "value", text: item[2]! },
        ]
      : [{ kind: "text", text: line }];
  }
  const [, indent = "", key = "", rest = ""] = match;
  const tokens: Token[] = [
    { kind: "mark", text: indent },
    { kind: "key", text: key },
    { kind: "mark", text: ":" },
  ];
  const comment = /\s#.*$/.exec(rest);
  const value = comment ? rest.slice(0, comment.index) : rest;
  tokens.push({ kind: "value", text: value });
  if (comment) tokens.push({ kind: "comment", text: comment[0] });
  return tokens.filter((token) => token.text !== "");
}
