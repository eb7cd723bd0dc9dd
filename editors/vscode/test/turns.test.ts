import assert from "node:assert/strict";
import test from "node:test";
import { Turns } from "../src/turns";

test("work is done in order, and continues after a failure", async () => {
  const turns = new Turns();
  const done: string[] = [];
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  const first = turns.take(async () => {
    await gate;
    done.push("first");
    throw new Error("no");
  });
  const second = turns.take(async () => done.push("second"));
  open();
  await assert.rejects(first, /no/);
  assert.equal(await second, 2);
  assert.deepEqual(done, ["first", "second"]);
});
