// What a report of a fault should hold, as Markdown. Settings only where they differ from their defaults; nothing of any program.

export interface Facts {
  readonly extension: string;
  readonly editor: string;
  readonly platform: string;
  readonly trusted: boolean;
  readonly state: string;
  readonly server: string;
  readonly capabilities: readonly string[];
  readonly settings: Readonly<Record<string, unknown>>;
}

export function debugInfo(facts: Facts): string {
  const settings = Object.entries(facts.settings).map(([name, value]) => `  - \`${name}\`: \`${JSON.stringify(value)}\``);
  return [
    `- extension: ${facts.extension}`,
    `- editor: ${facts.editor}`,
    `- platform: ${facts.platform}`,
    `- workspace: ${facts.trusted ? "trusted" : "not trusted"}`,
    `- server: ${facts.state}; ${facts.server}`,
    `- capabilities: ${facts.capabilities.join(", ") || "none"}`,
    settings.length === 0 ? "- settings: as they come" : "- settings:",
    ...settings,
    "",
  ].join("\n");
}
