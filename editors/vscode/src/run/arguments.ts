// Arguments of rxrun as a user writes them, and those a run turned out to lack.

// Words between blanks; quotes hold blanks, a backslash the next character (but for a path on Windows, where it is one).
export function words(line: string, windows: boolean): string[] | { readonly problem: string } {
  const found: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (let at = 0; at < line.length; at += 1) {
    const character = line.charAt(at);
    if (quote !== undefined) {
      if (character === quote) {
        quote = undefined;
      } else {
        word = (word ?? "") + character;
      }
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= "";
    } else if (character === "\\" && !windows && at + 1 < line.length) {
      at += 1;
      word = (word ?? "") + line.charAt(at);
    } else if (/\s/.test(character)) {
      if (word !== undefined) {
        found.push(word);
      }
      word = undefined;
    } else {
      word = (word ?? "") + character;
    }
  }
  if (quote !== undefined) {
    return { problem: `the quote ${quote} is not closed` };
  }
  return word === undefined ? found : [...found, word];
}

export function line(words: readonly string[]): string {
  return words.map((word) => (/^[^\s"'\\]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`)).join(" ");
}

// The symbolic dims that rxrun asks for: "the dim n of parameter `x` is not known: say --dim n=…, or …", "… are not known: say …".
export function missingDims(message: string): string[] {
  if (!/\b(?:is|are) not known: say\b/.test(message)) {
    return [];
  }
  return [...message.matchAll(/--dim ([A-Za-z_]\w*)=…/g)].flatMap((match) => match[1] ?? []);
}

// The arguments of the server's command: the module last, where it is known.
export function runArguments(uri: string, name: string | undefined, words: readonly string[], module: string | undefined): unknown[] {
  return [uri, name ?? null, words, ...(module === undefined ? [] : [module])];
}

// With this module in place of another.
export function withModule(words: readonly string[], module: string): string[] {
  return [...without("--module", words), `--module=${module}`];
}

// What is remembered, but where `more` says otherwise, and `more`.
export function beside(words: readonly string[], more: readonly string[]): string[] {
  const options = more.filter((word) => word.startsWith("--")).map((word) => word.split("=", 1)[0] ?? word);
  return [...options.reduce((kept: readonly string[], option) => without(option, kept), words), ...more];
}

// Without what `option` says: `--output x`, `--output=x`.
export function without(option: string, words: readonly string[]): string[] {
  return words.filter((word, at) => word !== option && words[at - 1] !== option && !word.startsWith(`${option}=`));
}
