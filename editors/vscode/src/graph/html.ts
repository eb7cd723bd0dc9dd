// The HTML page of a graph, with its style sheet and script.

import { escaped } from "../html";

export interface Sources {
  readonly style: string;
  readonly script: string;
  // The source from which the content security policy allows style sheets.
  readonly source: string;
  // The nonce of the only script that the content security policy allows.
  readonly nonce: string;
}

export function page({ style, script, source, nonce }: Sources): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${escaped(source)}; script-src 'nonce-${escaped(nonce)}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${escaped(style)}">
<title>Graph</title>
</head>
<body>
<div id="bar" role="toolbar" aria-label="Graph">
<span id="title"></span>
<span id="note" role="status"></span>
<button id="in" title="Larger (+)" aria-label="Larger">+</button>
<button id="out" title="Smaller (-)" aria-label="Smaller">−</button>
<button id="fit" title="Show all (0)" aria-label="Show all">Fit</button>
</div>
<main id="drawing"></main>
<script nonce="${escaped(nonce)}" src="${escaped(script)}"></script>
</body>
</html>
`;
}
