// The facts for a bug report, as Markdown. Only settings that differ from their defaults are listed, and no text of any program.

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
    settings.length === 0 ? "- settings: all defaults" : "- settings:",
    ...settings,
    "",
  ].join("\n");
}
