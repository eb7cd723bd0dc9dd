// Parses and combines the arguments of rxrun that the user types.

// Splits a line into words at blanks. Quotes keep blanks; a backslash escapes the next character, except on Windows, where it separates folders.
export function words(line: string, windows = process.platform === "win32"): string[] | { readonly problem: string } {
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

// Returns the arguments of the server's command; the last one is the module, if it is known.
export function runArguments(uri: string, name: string | undefined, words: readonly string[], module: string | undefined): unknown[] {
  return [uri, name ?? null, words, ...(module === undefined ? [] : [module])];
}

// Returns the function and module that a run without a name executes, from the arguments of the lenses that run functions: the only function, if it is not
// `main`, which needs no name.
export function onlyFunction(lenses: readonly (readonly unknown[])[]): { readonly function: string; readonly module?: string } | undefined {
  const [[, name, , module] = [], ...others] = lenses;
  return typeof name !== "string" || name === "main" || others.length > 0 ? undefined : { function: name, ...(typeof module === "string" && { module }) };
}

// Returns the arguments of the server's command that stops runs: the address of the program that the user named, otherwise of the active program if it
// runs. Without an address, the server stops all runs.
export function stopArguments(named: string | undefined, active: string | undefined, runs: (program: string) => boolean): string[] {
  const program = named ?? (active !== undefined && runs(active) ? active : undefined);
  return program === undefined ? [] : [program];
}

// Returns the words with this module instead of another.
export function withModule(words: readonly string[], module: string): string[] {
  return [...without("--module", words), `--module=${module}`];
}

// Appends `more`, and removes the options that `more` overrides.
export function beside(words: readonly string[], more: readonly string[]): string[] {
  const options = more.filter((word) => word.startsWith("--")).map((word) => word.split("=", 1)[0] ?? word);
  return [...options.reduce((kept: readonly string[], option) => without(option, kept), words), ...more];
}

// Returns the words without an option and its value: `--output x`, `--output=x`.
export function without(option: string, words: readonly string[]): string[] {
  return words.filter((word, at) => word !== option && words[at - 1] !== option && !word.startsWith(`${option}=`));
}

// Returns the values of an option, written `--option value` or `--option=value`, in order.
export function optionValues(option: string, words: readonly string[]): string[] {
  return words.flatMap((word, at) => (word === option ? (words[at + 1] ?? []) : word.startsWith(`${option}=`) ? word.slice(option.length + 1) : []));
}

// Returns the names and values of an option such as `--dim n=4`, in order.
export function assignments(option: string, words: readonly string[]): [name: string, value: string][] {
  return optionValues(option, words).flatMap((text) => {
    const at = text.indexOf("=");
    return at > 0 && at + 1 < text.length ? [[text.slice(0, at), text.slice(at + 1)]] : [];
  });
}
