// Which documents are rx's.

export interface Text {
  readonly languageId: string;
  readonly uri: { readonly scheme: string };
  // The first lines.
  readonly head: () => string;
}

const SCHEMES = ["file", "untitled"];

// TVM's import, in a comment too, as TVM prints it; or what is decorated.
const SCRIPT = /^[# \t]*(?:from|import)[ \t]+tvm\b|^[ \t]*@(?:I\.ir_module|R\.function|T\.prim_func)\b/m;

// `untitled`: text pasted into a new editor is checked before it is saved.
export function selector(python: boolean): { scheme: string; language: string }[] {
  const languages = python ? ["relax", "python"] : ["relax"];
  return languages.flatMap((language) => SCHEMES.map((scheme) => ({ scheme, language })));
}

// Whether a document is a reason to start the server. Most Python files have nothing of TVM; a project of those costs no process.
export function wantsServer(document: Text, python: boolean): boolean {
  if (!SCHEMES.includes(document.uri.scheme)) {
    return false;
  }
  if (document.languageId === "relax") {
    return true;
  }
  return python && document.languageId === "python" && SCRIPT.test(document.head());
}
