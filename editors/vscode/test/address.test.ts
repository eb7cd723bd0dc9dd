import assert from "node:assert/strict";
import test from "node:test";
import { query, readAddress } from "../src/address";
import { readIndex } from "../src/passes/passes";
import { readKind } from "../src/stage/stage";

test("the query of an address contains the program and the part", () => {
  assert.deepEqual(readAddress(query("file:///net.rx", 2), readIndex), { program: "file:///net.rx", what: 2 });
  assert.deepEqual(readAddress(query("file:///net.rx", "cuda"), readKind), { program: "file:///net.rx", what: "cuda" });
});

test("other addresses are rejected", () => {
  for (const wrong of ["", "{", "[]", "null", '{"program":"file:///net.rx"}', query("", 2), query("file:///net.rx", "cuda")]) {
    assert.equal(readAddress(wrong, readIndex), undefined, wrong);
  }
  assert.equal(readAddress(query("file:///net.rx", "toString"), readKind), undefined);
  assert.equal(readAddress(query("file:///net.rx", 2), readKind), undefined);
});
