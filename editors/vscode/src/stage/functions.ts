// Finds the function at a position of a program in the editor's outline, which is cheaper than a stage.

import * as vscode from "vscode";

const FUNCTIONS = [vscode.SymbolKind.Function, vscode.SymbolKind.Method];

export class Functions {
  private known: { readonly key: string; readonly symbols: Promise<vscode.DocumentSymbol[]> } | undefined;

  // Returns the outermost function around the position, after the name of its module: `Net.main`, or `Net#2.main` in the second module of that name.
  async at(document: vscode.TextDocument, position: vscode.Position): Promise<string | undefined> {
    let symbols = await this.symbols(document);
    let module = "";
    for (;;) {
      const around = symbols.find((symbol) => symbol.range.contains(position));
      if (around === undefined || FUNCTIONS.includes(around.kind)) {
        return around && `${module}${around.name}`;
      }
      const alike = symbols.filter((symbol) => symbol.name === around.name && symbol.kind === around.kind);
      module = `${around.name}${alike.length > 1 ? `#${alike.indexOf(around) + 1}` : ""}.`;
      symbols = around.children;
    }
  }

  private symbols(document: vscode.TextDocument): Promise<vscode.DocumentSymbol[]> {
    const key = `${document.version} ${document.uri.toString()}`;
    if (this.known?.key !== key) {
      this.known = { key, symbols: outline(document.uri) };
    }
    return this.known.symbols;
  }
}

async function outline(uri: vscode.Uri): Promise<vscode.DocumentSymbol[]> {
  const symbols = await vscode.commands.executeCommand<(vscode.DocumentSymbol | vscode.SymbolInformation)[] | undefined>(
    "vscode.executeDocumentSymbolProvider",
    uri,
  );
  return (symbols ?? []).filter((symbol): symbol is vscode.DocumentSymbol => "children" in symbol);
}
