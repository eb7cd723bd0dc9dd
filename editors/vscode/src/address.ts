// Addresses of virtual documents: the query names the program that a document is generated from, and the part that it shows.

import { record, text } from "./json";

export interface Address<What> {
  readonly program: string;
  readonly what: What;
}

// Returns the query of the document's address.
export function query(program: string, what: unknown): string {
  return JSON.stringify({ program, what } satisfies Address<unknown>);
}

// Parses the query of an address. `read` parses the part; undefined if the address is not that of such a document.
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
