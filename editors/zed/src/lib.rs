//! The Zed extension for Relax: starts `rx-lsp` and passes the settings to it.

use zed_extension_api::{self as zed, settings::LspSettings, LanguageServerId, Result, Worktree};

const SERVER: &str = "rx-lsp";

struct Rx;

impl zed::Extension for Rx {
    fn new() -> Rx {
        Rx
    }

    /// Returns the command of the server: the setting `lsp.rx-lsp.binary`, otherwise the `rx-lsp` in `PATH`.
    /// For example, `{"lsp": {"rx-lsp": {"binary": {"path": "/opt/rx/rx-lsp"}}}}` starts `/opt/rx/rx-lsp --stdio`.
    fn language_server_command(&mut self, server: &LanguageServerId, worktree: &Worktree) -> Result<zed::Command> {
        let binary = LspSettings::for_worktree(server.as_ref(), worktree)?.binary;
        let (path, arguments, own) = match binary {
            Some(binary) => (binary.path, binary.arguments, binary.env),
            None => (None, None, None),
        };
        let command = path.or_else(|| worktree.which(SERVER)).ok_or_else(|| {
            format!("`{SERVER}` is not in PATH: install it, or set its path in the setting `lsp.{SERVER}.binary.path`")
        })?;
        let mut env = worktree.shell_env();
        env.extend(own.into_iter().flatten());
        Ok(zed::Command { command, args: arguments.unwrap_or_else(|| vec!["--stdio".to_owned()]), env })
    }

    fn language_server_initialization_options(
        &mut self,
        server: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<zed::serde_json::Value>> {
        Ok(LspSettings::for_worktree(server.as_ref(), worktree)?.initialization_options)
    }

    fn language_server_workspace_configuration(
        &mut self,
        server: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<zed::serde_json::Value>> {
        let settings = LspSettings::for_worktree(server.as_ref(), worktree)?.settings;
        Ok(settings.map(|settings| zed::serde_json::json!({ "rx": settings })))
    }
}

zed::register_extension!(Rx);
