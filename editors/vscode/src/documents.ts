// The documents that rx checks.

export interface Text {
  readonly languageId: string;
  readonly uri: { readonly scheme: string };
  // Returns the first lines.
  readonly head: () => string;
}

const SCHEMES = ["file", "untitled"];

// The scheme of the cells of a notebook, which are documents of their own.
const CELL = "vscode-notebook-cell";
const NOTEBOOK = "jupyter-notebook";

interface FileFilter {
  readonly scheme: string;
  readonly language: string;
}

// An import of TVM, also in a comment as in TVM's output; or a decorated function or module.
const SCRIPT = /^[# \t]*(?:from|import)[ \t]+tvm\b|^[ \t]*@(?:I\.ir_module|R\.function|T\.prim_func)\b/m;

// Filters for the language client, which knows the type of a notebook as `notebook`.
export function selector(python: boolean): (FileFilter | { notebook: string; language: string })[] {
  return filters(python, { notebook: NOTEBOOK, language: "python" });
}

// The same filters for the editor, which knows it as `notebookType`.
export function editorSelector(python: boolean): (FileFilter | { notebookType: string; language: string })[] {
  return filters(python, { notebookType: NOTEBOOK, language: "python" });
}

// `untitled`: text pasted into a new editor is checked before it is saved.
function filters<Cell>(python: boolean, cell: Cell): (FileFilter | Cell)[] {
  const files = (language: string): FileFilter[] => SCHEMES.map((scheme) => ({ scheme, language }));
  return python ? [...files("relax"), ...files("python"), cell] : files("relax");
}

// Whether the server must be started for a document. Most Python files do not use TVM, and a project of such files needs no server.
export function wantsServer(document: Text, python: boolean): boolean {
  const inCell = document.uri.scheme === CELL;
  if (!inCell && !SCHEMES.includes(document.uri.scheme)) {
    return false;
  }
  if (document.languageId === "relax") {
    return !inCell;
  }
  return python && document.languageId === "python" && SCRIPT.test(document.head());
}
