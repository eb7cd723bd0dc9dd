//! Tests of `--why` and `--stats` on whole networks.

use super::Tally;
use rx_base::Dim;
use rx_db::{Asked, FileKind, FunctionOrLoops, FunctionStats, Workspace};
use rx_tests::cases;
use std::path::Path;
use std::sync::Arc;

fn opened(path: &Path) -> Option<(Workspace, rx_db::FileId)> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut workspace = Workspace::new();
    let python = path.extension().is_some_and(|extension| extension == "py");
    let file = workspace.add(&text, if python { FileKind::Python } else { FileKind::Rx });
    Some((workspace, file))
}

#[test]
fn every_known_part_of_some_values_has_a_trace_that_ends() {
    traces_of_values_end(20);
}

#[test]
#[ignore = "sweep: .ci/full"]
fn every_known_part_of_many_values_has_a_trace_that_ends() {
    traces_of_values_end(200);
}

/// Traces `count` values of each model, distributed over its file.
fn traces_of_values_end(count: usize) {
    let Some(folder) = cases::folder() else { return };
    let mut paths = cases::files(&folder.join("models"), "rx");
    paths.extend(cases::files(&folder.join("models/mlc"), "py"));
    let mut tally = Tally::new("traces that end at a place of the text");
    for path in &paths {
        let Some((workspace, file)) = opened(path) else { continue };
        let rows = workspace.types(file);
        let step = rows.len().div_ceil(count).max(1);
        for row in rows.iter().step_by(step) {
            let at = || format!("{}: {} at byte {}: {}", path.display(), row.name, row.span.start, row.struct_info);
            let Some(why) = workspace.why(file, row.span.start as usize, &Asked::Everything) else {
                // The name of a bare statement is its value; one without a value has no trace.
                tally.count(row.name == "_" || row.struct_info == "R.Any", at);
                continue;
            };
            for trace in &why.traces {
                let last = trace.steps.last();
                let ends = last.is_some_and(|step| step.kind.is_end() && step.kind.name() != "unknown");
                let once =
                    trace.steps.iter().rev().skip(1).all(|step| !step.kind.is_end() || step.text.contains(" is axis "));
                tally.count(ends && once, || {
                    format!("{}, {} = {}: {:?}", at(), trace.part, trace.fact, last.map(|step| &step.text))
                });
            }
        }
    }
    tally.must_be_complete();
}

fn stats_of(folder: &Path, model: &str) -> Option<Arc<FunctionStats>> {
    let (workspace, file) = opened(&folder.join("models").join(format!("{model}.rx")))?;
    workspace.stats(file).into_iter().find_map(|row| match row.stats {
        FunctionOrLoops::Relax(stats) if stats.name == "main" => Some(stats),
        _ => None,
    })
}

/// Returns the multiply-adds of convolutions and products, in millions.
#[expect(clippy::cast_precision_loss, reason = "compared within a percent")]
fn multiply_adds(stats: &FunctionStats) -> f64 {
    let products = ["nn.conv2d", "matmul", "nn.attention"];
    let operations = products.iter().filter_map(|name| stats.operators.get(name)?.operations.as_constant());
    operations.sum::<i64>() as f64 / 2e6
}

#[test]
fn operations_agree_with_published_figures() {
    let Some(folder) = cases::folder() else { return };
    // Multiply-adds per image according to torchvision, in millions.
    let published = [
        ("resnet18", 1814.0),
        ("resnet50", 4089.0),
        ("mobilenet_v2", 301.0),
        ("densenet121", 2834.0),
        ("efficientnet_b0", 386.0),
        ("vit_b_16", 17564.0),
    ];
    let mut tally = Tally::new("multiply-adds within 1 % of published figures");
    for (model, wanted) in published {
        let Some(stats) = stats_of(&folder, model) else { continue };
        let counted = multiply_adds(&stats);
        tally.count((counted / wanted - 1.0).abs() < 0.01, || format!("{model}: {counted} M, published {wanted} M"));
    }
    tally.must_be_complete();
}

/// Returns the multiply-adds of a transformer of 12 layers of width 768 over `tokens`: four projections, the two
/// products of the feed-forward part of four times the width, and both products of attention.
fn transformer(tokens: i64) -> i64 {
    let width = 768;
    12 * (12 * tokens * width * width + 2 * tokens * tokens * width)
}

#[test]
fn transformers_have_the_operations_their_formula_gives() {
    let Some(folder) = cases::folder() else { return };
    // BERT's pooler sees one token; GPT-2's head computes a score for each of 50257 words.
    let wanted = [("bert_base", transformer(128) + 768 * 768), ("gpt2", transformer(64) + 64 * 768 * 50257)];
    for (model, wanted) in wanted {
        let Some(stats) = stats_of(&folder, model) else { continue };
        #[expect(clippy::cast_precision_loss, reason = "compared within a thousandth")]
        let ratio = multiply_adds(&stats) * 1e6 / wanted as f64;
        assert!((ratio - 1.0).abs() < 1e-3, "{model}: {ratio}");
        assert_eq!(stats.total.uncounted, 0, "{model}");
        assert_ne!(stats.weights.elements, Dim::constant(0), "{model} states num_input");
    }
}

#[test]
fn lowering_keeps_the_cost_of_a_network() {
    let Some(folder) = cases::folder() else { return };
    for model in ["resnet18", "bert_base"] {
        let Some(before) = stats_of(&folder, model) else { continue };
        for stage in ["legalized", "fuseops", "lowered"] {
            let Some(after) = stats_of(&folder, &format!("stages/{model}.{stage}")) else { continue };
            let (Some(before), Some(after)) =
                (before.total.operations.as_constant(), after.total.operations.as_constant())
            else {
                panic!("{model}.{stage}: {} of {}", after.total.operations, before.total.operations);
            };
            println!("{model}.{stage}: {after} operations, {before} before");
            // The loops of normalizations and softmax take other steps than the statistics count for the operators.
            let close = before.abs_diff(after) * 50 < before.unsigned_abs();
            assert!(close, "{model}.{stage}: {after} operations, {before} before");
        }
    }
}
