//! Capabilities for code actions, inlay hints, completions, signature help, formatting, code lenses and commands: the
//! client's, and the server's that depend on them.

use super::{PARAMETER_HINTS, Profile, Writing, actions};
use crate::commands;
use crate::run::{COMMAND, STOP, stage};
use tower_lsp::ls_types::{self as proto, ClientCapabilities, MarkupKind};

/// Extracts the client's capabilities for these requests.
pub fn taken(capabilities: &ClientCapabilities) -> Writing {
    let document = capabilities.text_document.as_ref();
    let workspace = capabilities.workspace.as_ref();
    let action = document.and_then(|document| document.code_action.as_ref());
    let completion = document.and_then(|document| document.completion.as_ref());
    let item = completion.and_then(|completion| completion.completion_item.as_ref());
    let signature = document.and_then(|document| document.signature_help.as_ref());
    let signature = signature.and_then(|signature| signature.signature_information.as_ref());
    let hint = document.and_then(|document| document.inlay_hint.as_ref());
    let says = |flag: Option<bool>| flag == Some(true);
    let has = |properties: Option<&[String]>, wanted: &str| {
        properties.is_some_and(|properties| properties.iter().any(|property| property == wanted))
    };
    let markdown =
        |formats: Option<&[MarkupKind]>| formats.is_some_and(|formats| formats.contains(&MarkupKind::Markdown));
    let resolved = action.and_then(|it| it.resolve_support.as_ref()).map(|it| &*it.properties);
    let params = signature.and_then(|it| it.parameter_information.as_ref());
    let tags = item.and_then(|it| it.tag_support.as_ref());
    let commands = capabilities.experimental.as_ref().and_then(|it| it.get("commands")?.get("commands")?.as_array());
    Writing {
        actions: action.is_some_and(|it| it.code_action_literal_support.is_some()),
        late_actions: has(resolved, "edit") && says(action.and_then(|it| it.data_support)),
        preferred: says(action.and_then(|it| it.is_preferred_support)),
        versioned: says(workspace.and_then(|it| it.workspace_edit.as_ref()?.document_changes)),
        apply: says(workspace.and_then(|it| it.apply_edit)),
        snippets: says(item.and_then(|it| it.snippet_support)),
        parameter_hints: commands.is_some_and(|commands| commands.iter().any(|command| command == PARAMETER_HINTS)),
        late_docs: has(item.and_then(|it| it.resolve_support.as_ref()).map(|it| &*it.properties), "documentation"),
        deprecated: tags.is_some_and(|tags| tags.value_set.contains(&proto::CompletionItemTag::DEPRECATED)),
        markdown_docs: markdown(item.and_then(|it| it.documentation_format.as_deref())),
        markdown_signatures: markdown(signature.and_then(|it| it.documentation_format.as_deref())),
        label_offsets: says(params.and_then(|it| it.label_offset_support)),
        active_parameter: says(signature.and_then(|it| it.active_parameter_support)),
        late_hints: has(hint.and_then(|it| it.resolve_support.as_ref()).map(|it| &*it.properties), "tooltip"),
    }
}

/// Sets the server's capabilities for these requests.
pub fn offer(capabilities: &mut proto::ServerCapabilities, profile: &Profile) {
    let writing = &profile.writing;
    let kinds = [
        "quickfix",
        actions::RUN,
        actions::FIX_ALL,
        actions::ANNOTATE,
        actions::ANNOTATE_FUNCTION,
        actions::RAW_ENTRY,
        actions::EXTRACT,
        actions::INLINE,
        actions::REWRITE,
    ];
    let kinds = kinds.map(|kind| proto::CodeActionKind::from(kind.to_owned())).to_vec();
    capabilities.code_action_provider = Some(match writing.actions {
        true => proto::CodeActionProviderCapability::Options(proto::CodeActionOptions {
            code_action_kinds: Some(kinds),
            resolve_provider: writing.late_actions.then_some(true),
            ..Default::default()
        }),
        false => proto::CodeActionProviderCapability::Simple(true),
    });
    capabilities.inlay_hint_provider =
        Some(proto::OneOf::Right(proto::InlayHintServerCapabilities::Options(proto::InlayHintOptions {
            resolve_provider: writing.late_hints.then_some(true),
            ..Default::default()
        })));
    capabilities.completion_provider = Some(proto::CompletionOptions {
        resolve_provider: writing.late_docs.then_some(true),
        trigger_characters: Some([".", "(", ",", "\"", "=", "@"].map(str::to_owned).to_vec()),
        ..Default::default()
    });
    capabilities.signature_help_provider = Some(proto::SignatureHelpOptions {
        trigger_characters: Some(["(", ","].map(str::to_owned).to_vec()),
        ..Default::default()
    });
    capabilities.document_formatting_provider = Some(proto::OneOf::Left(true));
    capabilities.document_range_formatting_provider = Some(proto::OneOf::Left(true));
    let [first, more @ ..] = rx_ide::FORMAT_AFTER.map(String::from);
    capabilities.document_on_type_formatting_provider = Some(proto::DocumentOnTypeFormattingOptions {
        first_trigger_character: first,
        more_trigger_character: Some(Vec::from(more)),
    });
    capabilities.code_lens_provider = Some(proto::CodeLensOptions { resolve_provider: Some(true) });
    capabilities.execute_command_provider = Some(proto::ExecuteCommandOptions {
        commands: [
            COMMAND,
            STOP,
            stage::COMMAND,
            commands::WHY,
            commands::ANNOTATE,
            commands::GRAPH,
            commands::SYNTAX_TREE,
        ]
        .map(str::to_owned)
        .to_vec(),
        work_done_progress_options: proto::WorkDoneProgressOptions { work_done_progress: Some(true) },
    });
}
