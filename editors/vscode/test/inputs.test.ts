import assert from "node:assert/strict";
import test from "node:test";
import { chosenInputs, inputFiles, parameters, ticked, withInputs } from "../src/run/inputs";

test("input files are offered, those named after the program first", () => {
  const folder = ["b.npz", "net.rx", "x.npy", "net.inputs.npz", "net.npz", "weights.safetensors", "a.npz", "README.md", "network.npz", "OLD.NPZ"];
  assert.deepEqual(inputFiles(folder, "net.rx"), ["net.inputs.npz", "net.npz", "OLD.NPZ", "a.npz", "b.npz", "network.npz", "weights.safetensors", "x.npy"]);
});

test("chosen files replace others and keep other arguments", () => {
  const words = ["--device", "cpu", "--inputs", "old.npz", "--input=x=old.npy", "--input", "w=w.npy", "--dim", "n=4"];
  const chosen = [{ file: "my data.npz" }, { file: "x.npy", parameter: "x" }];
  assert.deepEqual(withInputs(words, chosen), ["--device", "cpu", "--inputs", "my data.npz", "--input", "x=x.npy"]);
});

test("choosing the seed keeps the values of dims", () => {
  assert.deepEqual(withInputs(["--inputs", "old.npz", "--dim", "n=4", "--seed", "7"], []), ["--dim", "n=4", "--seed", "7"]);
});

test("chosen files are found in the arguments in every spelling", () => {
  const words = ["--inputs", "a.npz", "--inputs=b.safetensors", "--input", "x=x=1.npy", "--input=w=w.npy", "--input", "--inputs"];
  assert.deepEqual(chosenInputs(words), [
    { file: "a.npz" },
    { file: "b.safetensors" },
    { file: "x=1.npy", parameter: "x" },
    { file: "w.npy", parameter: "w" },
  ]);
  const chosen = [{ file: "a.npz" }, { file: "w.npy", parameter: "w" }];
  assert.deepEqual(chosenInputs(withInputs([], chosen)), chosen);
});

test("selecting files deselects the seed, and the reverse", () => {
  assert.deepEqual(ticked([undefined], [undefined, "a.npz"]), ["a.npz"]);
  assert.deepEqual(ticked(["a.npz", "b.npz"], [undefined, "a.npz", "b.npz"]), [undefined]);
  assert.deepEqual(ticked(["a.npz"], ["a.npz", "b.npz"]), ["a.npz", "b.npz"]);
  assert.deepEqual(ticked(["a.npz"], []), [undefined]);
  assert.deepEqual(ticked([undefined], []), [undefined]);
});

test("the names of all functions' parameters are found", () => {
  const program = `
@I.ir_module
class Module:
    @T.prim_func
    def scale(A: T.Buffer((4,), "float32"), B: T.handle):
        T.evaluate(0)

    @R.function
    def main(
        x: R.Tensor(("n", 4), dtype="float32"),  # (the: input)
        w: R.Tuple(R.Tensor((4,)), R.Tensor), s: R.Shape(["n"]) = None
    ) -> R.Tensor:
        y: R.Tensor = x
`;
  assert.deepEqual(parameters(program), ["A", "B", "x", "w", "s"]);
  assert.deepEqual(parameters("def broken(x: R.Tensor((1,"), ["x"]);
  assert.deepEqual(parameters("x = 1"), []);
});
