//! Resources that CUDA kernels need (registers, shared memory, occupancy), as text for the headers of kernels and for
//! `--emit schedule`.

use rx_cuda::images::resources::{self, Occupancy, Resources};
use rx_cuda::images::{Image, ImageCache, ListedResources};
use rx_cuda::nvrtc::NvrtcError;
use rx_cuda::{KernelInfo, Listing};
use std::collections::BTreeMap;

/// The resources of kernels, for each architecture that they were compiled for.
pub(super) struct Needs(Vec<(u32, ListedResources)>);

impl Needs {
    /// Compiles the kernels of a listing and reads their resources.
    ///
    /// # Errors
    /// If NVRTC is not found.
    pub(super) fn of(listing: &Listing, archs: &[u32]) -> Result<Needs, NvrtcError> {
        let kept = ImageCache::of_user();
        let of = |arch: &u32| Ok((*arch, listing.resources(*arch, &kept)?));
        Ok(Needs(archs.iter().map(of).collect::<Result<_, _>>()?))
    }

    /// Reads the resources of kernels that are already compiled.
    pub(super) fn of_images(images: &[Image], arch: u32) -> Needs {
        let kernels: BTreeMap<String, Resources> = images.iter().flat_map(|image| resources::of(&image.code)).collect();
        Needs(vec![(arch, ListedResources { kernels, ..ListedResources::default() })])
    }

    /// Creates an empty value, for when NVRTC is not available.
    pub(super) fn unknown() -> Needs {
        Needs(Vec::new())
    }

    /// Returns the resources of a kernel as text, one line per architecture.
    pub(super) fn lines(&self, function: usize, kernel: &KernelInfo) -> Vec<String> {
        let line = |(arch, listed): &(u32, ListedResources)| {
            let needs = listed.kernels.get(&kernel.name).map(|needs| shown(needs, *arch, kernel));
            let refused = || listed.refused.get(&function).map(ToString::to_string);
            needs.or_else(refused).map(|text| format!("sm_{arch}: {text}"))
        };
        self.0.iter().filter_map(line).collect()
    }
}

/// Formats resources, for example `32 registers, 0 bytes of shared memory, no stack; 8 blocks of 256 threads on a
/// multiprocessor at a time, 100 % of its warps`.
fn shown(needs: &Resources, arch: u32, kernel: &KernelInfo) -> String {
    let (threads, dynamic) = (kernel.shape.block_threads(), kernel.shape.shared_bytes);
    let beside =
        if dynamic == 0 { String::new() } else { format!(", {dynamic} bytes more of shared memory at launch") };
    let full = needs.occupancy(arch, threads, dynamic).map(|Occupancy { blocks, percent }| {
        let plural = if blocks == 1 { "" } else { "s" };
        format!("; {blocks} block{plural} of {threads} threads on a multiprocessor at a time, {percent} % of its warps")
    });
    format!("{needs}{beside}{}", full.unwrap_or_default())
}

/// Inserts the resources of each kernel as comments into a function's CUDA C.
pub(super) fn commented(text: &str, function: usize, kernels: &[KernelInfo], needs: &Needs) -> String {
    let mut text = text.to_owned();
    for kernel in kernels.iter().rev() {
        let Some(own) = text.get(kernel.text.clone()) else { continue };
        let Some(at) = own.find("extern \"C\" __global__") else { continue };
        let lines: String =
            needs.lines(function, kernel).iter().map(|line| rx_build::listing::comment("//", line)).collect();
        text.insert_str(kernel.text.start + at, &lines);
    }
    text
}
