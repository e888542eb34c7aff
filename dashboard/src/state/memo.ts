// A component that is drawn again only when one of its properties is another value.

import { Component, h, type ComponentChild, type FunctionComponent } from "preact";

export function memo<P extends object>(Inner: (props: P) => ComponentChild): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const before = this.props as Record<string, unknown>;
      const after = next as Record<string, unknown>;
      return (
        Object.keys(after).some((key) => !Object.is(before[key], after[key])) || Object.keys(before).length !== Object.keys(after).length
      );
    }
    override render(): ComponentChild {
      return h(Inner as FunctionComponent<P>, this.props as P);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
