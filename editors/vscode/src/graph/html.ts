// The HTML page of a graph. It contains its style sheet and script: a file of its own would be fetched through VS Code's service worker.

import { escaped } from "../html";

export interface Sources {
  // The texts of the style sheet and the script.
  readonly style: string;
  readonly script: string;
  // The nonce of the only style sheet and script that the content security policy allows.
  readonly nonce: string;
}

export function page({ style, script, nonce }: Sources): string {
  const source = `'nonce-${escaped(nonce)}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${source}; script-src ${source}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style nonce="${escaped(nonce)}">${inElement(style)}</style>
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
<script nonce="${escaped(nonce)}">${inElement(script)}</script>
</body>
</html>
`;
}

// Escapes what would end a style or script element. In a string of either language, `\/` is `/` and `\!` is `!`.
function inElement(text: string): string {
  return text.replace(/<\/(?=style|script)/gi, "<\\/").replace(/<!--/g, "<\\!--");
}
