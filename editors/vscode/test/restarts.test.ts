import assert from "node:assert/strict";
import test from "node:test";
import { Restarts } from "../src/server/restarts";

test("the first restart is immediate, later ones are delayed, and there is no sixth in three minutes", () => {
  const restarts = new Restarts();
  const waits = [0, 1, 2, 3, 4, 5].map((second) => restarts.next(second * 1000));
  assert.deepEqual(waits, [0, 1000, 2000, 4000, 8000, undefined]);
});

test("old crashes, and those before a restart by the user, are not counted", () => {
  const restarts = new Restarts();
  assert.equal(restarts.next(0), 0);
  assert.equal(restarts.next(180_000), 0);
  assert.equal(restarts.next(180_001), 1000);
  restarts.forget();
  assert.equal(restarts.next(180_002), 0);
});
