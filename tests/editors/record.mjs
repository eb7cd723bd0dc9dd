#!/usr/bin/env node
// Stands in for rx-lsp to keep what an editor says in `initialize`, for the sessions in server/tests/lsp. record.sh starts it.
//
// RX_RECORD   the file it writes: the parameters, without what is of one machine or session

import { writeFileSync } from "node:fs";

// Of one machine or session, or about the project that was open.
const LOCAL = ["processId", "rootPath", "rootUri", "workspaceFolders", "locale", "trace", "workDoneToken"];

let input = Buffer.alloc(0);

function send(id, result) {
  const body = JSON.stringify({ jsonrpc: "2.0", id, result });
  process.stdout.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

function receive({ id, method, params }) {
  if (method === "initialize") {
    const kept = Object.fromEntries(Object.entries(params).filter(([key]) => !LOCAL.includes(key)));
    writeFileSync(process.env.RX_RECORD, `${JSON.stringify(kept, null, 2)}\n`);
    send(id, { capabilities: {} });
  } else if (method === "exit") {
    process.exit(0);
  } else if (id !== undefined && method !== undefined) {
    send(id, null);
  }
}

process.stdin.on("data", (piece) => {
  input = Buffer.concat([input, piece]);
  for (;;) {
    const head = input.indexOf("\r\n\r\n");
    const length = Number(/Content-Length: (\d+)/.exec(input.subarray(0, Math.max(head, 0)).toString())?.[1]);
    const end = head + 4 + length;
    if (head < 0 || !(input.length >= end)) {
      return;
    }
    receive(JSON.parse(input.subarray(head + 4, end).toString()));
    input = input.subarray(end);
  }
});
process.stdin.on("end", () => process.exit(0));
