// What the address of a document that the extension makes says besides its name: of which program it is, and what of it.

import { record, text } from "./json";

export interface Address<What> {
  readonly program: string;
  readonly what: What;
}

// The query of the document's address.
export function query(program: string, what: unknown): string {
  return JSON.stringify({ program, what } satisfies Address<unknown>);
}

// `read` tells what of the program such a document may show; nothing of addresses of others.
export function readAddress<What>(query: string, read: (value: unknown) => What | undefined): Address<What> | undefined {
  let fields: Record<string, unknown> | undefined;
  try {
    fields = record(JSON.parse(query));
  } catch {
    return undefined;
  }
  const [program, what] = [text(fields?.["program"]), read(fields?.["what"])];
  return program === "" || what === undefined ? undefined : { program, what };
}
