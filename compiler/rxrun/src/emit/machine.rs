//! `--emit ptx` and `--emit sass`: the kernels as compiled by NVRTC.

use super::resources::Needs;
use crate::args::{Args, Emit};
use crate::failure::Failure;
use crate::session::Session;
use rx_build::listing::{Group, Listing, comment, groups};
use rx_cuda::images::{self, ImageCache};
use rx_cuda::nvrtc::{self, Output};
use rx_cuda::{CudaSource, sass};
use rx_lower::Program;
use std::collections::BTreeMap;

/// Compiles the kernels and lists them as PTX or SASS, each with its resource needs.
pub(super) fn listing(stage: Emit, program: &Program, session: &Session, args: &Args) -> Result<Listing, Failure> {
    let usage = |error: &dyn ToString| Failure::usage(error.to_string());
    let (source, _) = rx_runtime::cuda::source(program, &args.target()).map_err(|error| usage(&error))?;
    if stage == Emit::Sass {
        // Fail before the compilation, which would be wasted.
        sass::probe().map_err(|error| usage(&error))?;
    }
    let images =
        images::compile(&source, args.arch, &ImageCache::of_user(), &mut |_, _| ()).map_err(|error| usage(&error))?;
    let (head, texts) = if stage == Emit::Sass {
        let mut texts = BTreeMap::new();
        for image in &images {
            texts.append(&mut sass::disassemble(&image.code).map_err(|error| usage(&error))?);
        }
        (String::new(), texts)
    } else {
        let ptx = nvrtc::compile(&source.text, args.arch, Output::Ptx).map_err(|error| usage(&error))?;
        split(&String::from_utf8_lossy(&ptx), &source)
    };
    let needs = Needs::of_images(&images, args.arch);
    Ok(listed(head, &texts, &groups(program), &source, &needs, session))
}

/// Joins the texts of kernels that belong to one function into one part of the listing.
fn listed(
    head: String,
    texts: &BTreeMap<String, String>,
    groups: &[Group<'_>],
    source: &CudaSource,
    needs: &Needs,
    session: &Session,
) -> Listing {
    let texts = source.functions.iter().enumerate().map(|(number, function)| {
        let mut text = String::new();
        for kernel in &function.kernels {
            text.push_str(&comment("//", &kernel.name));
            needs.lines(number, kernel).iter().for_each(|line| text.push_str(&comment("//", line)));
            text.push_str(texts.get(&kernel.name).map_or("", String::as_str));
            text.push('\n');
        }
        text
    });
    Listing::of_groups(head, (&session.workspace, session.module), groups, texts)
}

/// Splits PTX by kernel; returns the lines that belong to no kernel, then the text of each kernel by name.
fn split(ptx: &str, source: &CudaSource) -> (String, BTreeMap<String, String>) {
    let is_kernel =
        |name: &str| source.functions.iter().flat_map(|function| &function.kernels).any(|kernel| kernel.name == name);
    let mut head = String::new();
    let mut kernels: BTreeMap<String, String> = BTreeMap::new();
    let mut open: Option<String> = None;
    for line in ptx.trim_end_matches(['\0', '\n']).lines() {
        if let Some(name) = line.trim_start().strip_prefix("// .globl") {
            open = Some(name.trim().to_owned()).filter(|name| is_kernel(name));
            if open.is_some() {
                continue;
            }
        }
        let text = match &open {
            Some(name) => kernels.entry(name.clone()).or_default(),
            None => &mut head,
        };
        text.push_str(line);
        text.push('\n');
    }
    (head, kernels)
}
