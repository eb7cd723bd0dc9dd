//! Reads the resource usage of kernels (registers, shared memory, stack, spills) from a cubin, and computes their
//! occupancy. Needs no device and no tool such as `cuobjdump`.

use object::read::elf::{ElfFile64, FileHeader as _, SectionHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolIndex};
use std::collections::BTreeMap;
use std::fmt;

/// The resource usage of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// The registers of a thread.
    pub registers: u32,
    /// The static shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// The stack of a thread (local memory), in bytes, for example of spilled values.
    pub local_bytes: u32,
    /// The number of instructions that spill a register to the stack or load it back.
    pub spills: u32,
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Resources { registers, shared_bytes, local_bytes, spills } = self;
        write!(f, "{registers} registers, {shared_bytes} bytes of shared memory, ")?;
        match (local_bytes, spills) {
            (0, 0) => f.write_str("no stack"),
            (bytes, 0) => write!(f, "{bytes} bytes of stack, no spills"),
            (bytes, spills) => write!(f, "{bytes} bytes of stack, {spills} instructions that spill"),
        }
    }
}

/// The value of `e_machine` in the ELF header of a cubin.
const MACHINE: u16 = 190;

/// Attributes of the section `.nv.info`, each with a symbol: its number of registers, and the bytes of its stack frame.
const REGISTERS: u8 = 0x2f;
const FRAME: u8 = 0x11;

/// The attribute of the section `.nv.info.NAME` that annotates instructions, as a list of pairs (kind, address). It is
/// not documented. Observation with `ptxas` 12.9: pairs of kind 1, one for each instruction that spills, are at the
/// front of the list; there is no list if no instruction spills.
const NOTES: u8 = 0x55;
const SPILL: u32 = 1;

/// The form of an attribute whose value follows its size; other forms have a value of two bytes in place of the size.
const SIZED: u8 = 4;

/// The shared memory that the system reserves in each block, in bytes. Cubins for `sm_90` and later, which have a
/// section `.nv.shared.reserved.0`, include it in the size of a kernel's shared memory.
const RESERVED: u32 = 1024;

/// Returns the resource usage of the kernels in a cubin, by name. Returns an empty map for PTX and other files.
pub fn of(code: &[u8]) -> BTreeMap<String, Resources> {
    read(code).unwrap_or_default()
}

fn read(code: &[u8]) -> object::Result<BTreeMap<String, Resources>> {
    let file = ElfFile64::<Endianness>::parse(code)?;
    let end = file.endian();
    let mut kernels: BTreeMap<String, Resources> = BTreeMap::new();
    if file.elf_header().e_machine(end) != MACHINE {
        return Ok(kernels);
    }
    for section in file.sections() {
        if let Some(name) = section.name()?.strip_prefix(".text.") {
            // The attribute `REGISTERS` of `.nv.info` has the same number, but older compilers do not write it.
            let registers = section.elf_section_header().sh_info(end) >> 24;
            kernels.insert(name.to_owned(), Resources { registers, ..Resources::default() });
        }
    }
    let counts_reserved = file.sections().any(|section| section.name() == Ok(".nv.shared.reserved.0"));
    for section in file.sections() {
        let name = section.name()?;
        if let Some(kernel) = name.strip_prefix(".nv.shared.").and_then(|name| kernels.get_mut(name)) {
            let bytes = u32::try_from(section.size()).unwrap_or(u32::MAX);
            kernel.shared_bytes = bytes.saturating_sub(if counts_reserved { RESERVED } else { 0 });
        } else if let Some(kernel) = name.strip_prefix(".nv.info.").and_then(|name| kernels.get_mut(name)) {
            let notes = Attributes(section.data()?).filter(|(kind, _)| *kind == NOTES);
            kernel.spills = notes.map(|(_, list)| spills(list)).sum();
        } else if name == ".nv.info" {
            for (kind, value) in Attributes(section.data()?) {
                let (Some(symbol), Some(number)) = (word(value, 0), word(value, 1)) else { continue };
                let Ok(symbol) = file.symbol_by_index(SymbolIndex(symbol as usize)) else { continue };
                let Some(kernel) = symbol.name().ok().and_then(|name| kernels.get_mut(name)) else { continue };
                match kind {
                    REGISTERS => kernel.registers = number,
                    FRAME => kernel.local_bytes = number,
                    _ => {}
                }
            }
        }
    }
    Ok(kernels)
}

fn spills(notes: &[u8]) -> u32 {
    let kinds = notes.chunks_exact(8).filter_map(|note| word(note, 0));
    kinds.take_while(|kind| *kind == SPILL).count() as u32
}

/// Returns the little-endian 32-bit word with index `at`.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(4 * at..4 * at + 4)?;
    Some(u32::from_le_bytes(word.try_into().ok()?))
}

/// An iterator over the sized attributes of a `.nv.info` section, as pairs (kind, value).
struct Attributes<'b>(&'b [u8]);

impl<'b> Iterator for Attributes<'b> {
    type Item = (u8, &'b [u8]);

    fn next(&mut self) -> Option<(u8, &'b [u8])> {
        loop {
            let ([form, kind, low, high], rest) = self.0.split_first_chunk()?;
            if *form != SIZED {
                self.0 = rest;
                continue;
            }
            let (value, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([*low, *high])))?;
            self.0 = rest;
            return Some((*kind, value));
        }
    }
}

/// The limits of a multiprocessor, for some architectures with published numbers (CUDA C++ Programming Guide, "Compute
/// Capabilities", technical specifications per compute capability).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Multiprocessor {
    blocks: u32,
    warps: u32,
    shared_bytes: u32,
}

const WARP: u32 = 32;
const ALL_REGISTERS: u32 = 65_536;
/// The allocation unit of registers for a warp.
const REGISTER_PORTION: u32 = 256;
/// The allocation unit of shared memory for a block, in bytes. The memory that the system reserves is included before
/// rounding up.
const SHARED_PORTION: u32 = 128;
/// The schedulers of a multiprocessor; each has a quarter of the registers.
const SCHEDULERS: u32 = 4;

impl Multiprocessor {
    fn of(arch: u32) -> Option<Multiprocessor> {
        let (blocks, warps, kilobytes) = match arch {
            80 => (32, 64, 164),
            86 => (16, 48, 100),
            87 => (16, 48, 164),
            89 => (24, 48, 100),
            90 | 100 => (32, 64, 228),
            120 => (24, 48, 100),
            _ => return None,
        };
        Some(Multiprocessor { blocks, warps, shared_bytes: kilobytes << 10 })
    }
}

/// The occupancy of a multiprocessor by one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// The maximum number of blocks that run at the same time.
    pub blocks: u32,
    /// Their warps in percent of the maximum, rounded down.
    pub percent: u32,
}

impl Resources {
    /// Returns the occupancy of a multiprocessor by blocks of `threads` threads that have `dynamic_bytes` of shared
    /// memory in addition to the static shared memory. The rules are those of CUDA's `cuda_occupancy.h`. Returns `None`
    /// for an architecture whose limits this module does not list.
    ///
    /// For example, with 128 registers a thread, blocks of 256 threads on `sm_80` need 8 · 128 · 32 = 32,768 of 65,536
    /// registers, so two blocks fit: 16 of 64 warps, 25 %.
    pub fn occupancy(&self, arch: u32, threads: u32, dynamic_bytes: u32) -> Option<Occupancy> {
        let has = Multiprocessor::of(arch)?;
        let warps = threads.div_ceil(WARP).max(1);
        let of_warp = self.registers.saturating_mul(WARP).next_multiple_of(REGISTER_PORTION);
        let by_registers = match of_warp {
            0 => has.blocks,
            of_warp => ALL_REGISTERS / SCHEDULERS / of_warp * SCHEDULERS / warps,
        };
        let of_block = self.shared_bytes.saturating_add(dynamic_bytes).saturating_add(RESERVED);
        let by_shared = has.shared_bytes / of_block.div_ceil(SHARED_PORTION).saturating_mul(SHARED_PORTION);
        let blocks = has.blocks.min(has.warps / warps).min(by_registers).min(by_shared);
        Some(Occupancy { blocks, percent: 100 * blocks * warps / has.warps })
    }
}

#[cfg(test)]
mod tests {
    use super::{Occupancy, Resources, of};
    use crate::nvrtc::{NvrtcError, Output, compile, probe};

    /// Three kernels: one with shared memory, one whose values do not fit its registers, one with an array indexed at
    /// run time.
    const TEXT: &str = r#"
extern "C" __global__ void __launch_bounds__(256) shares(float* x) {
    __shared__ float tile[300];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[255 - threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(1024, 2) spills(float* x) {
    float held[40];
#pragma unroll
    for (int i = 0; i < 40; i++) held[i] = x[threadIdx.x + i * 1024];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 40; i++) x[threadIdx.x + i * 1024] = held[39 - i] * held[(i * 7) % 40];
}
extern "C" __global__ void indexes(float* x, int n) {
    float held[200];
    for (int i = 0; i < 200; i++) held[i] = x[i * n] * x[i];
    float sum = 0;
    for (int i = 0; i < n; i++) sum += held[(i * x[i] > 3) ? i % 200 : (i * 7) % 200];
    x[0] = sum;
}
"#;

    #[test]
    fn resources_are_read_from_machine_code() {
        match probe() {
            Ok(_) => {}
            Err(NvrtcError::NotFound(_)) => {
                println!("skipped: NVRTC not found");
                return;
            }
            Err(error) => panic!("{error}"),
        }
        for arch in [80, 90] {
            let code = compile(TEXT, arch, Output::Cubin).unwrap_or_else(|error| panic!("{error}"));
            let found = of(&code);
            assert_eq!(found.keys().collect::<Vec<_>>(), ["indexes", "shares", "spills"]);
            let [shares, spills, indexes] = ["shares", "spills", "indexes"].map(|name| found[name]);
            assert_eq!((shares.shared_bytes, shares.local_bytes, shares.spills), (1200, 0, 0), "sm_{arch}");
            assert!(shares.registers > 0 && shares.registers < 32, "{shares}");
            assert_eq!((spills.registers, spills.shared_bytes), (32, 0), "two blocks of 1024 threads leave 32");
            assert!(spills.local_bytes > 0 && spills.spills > 0, "{spills}");
            assert_eq!((indexes.local_bytes, indexes.spills), (800, 0), "an array on the stack is no spill");
        }
    }

    #[test]
    fn images_without_machine_code_have_no_resources() {
        assert!(of(b"").is_empty() && of(b".version 8.0\n\0").is_empty() && of(b"\x7fELF").is_empty());
        // On Linux, an executable of the host is an ELF file, too.
        let own = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
        assert!(of(&own).is_empty());
    }

    #[test]
    fn scarcest_resource_limits_occupancy() {
        let needs = |registers, shared_bytes| Resources { registers, shared_bytes, local_bytes: 0, spills: 0 };
        let of = |needs: Resources, arch, threads, dynamic| {
            let Occupancy { blocks, percent } =
                needs.occupancy(arch, threads, dynamic).unwrap_or_else(|| panic!("sm_{arch}"));
            (blocks, percent)
        };
        assert_eq!(of(needs(32, 0), 80, 256, 0), (8, 100), "warps");
        assert_eq!(of(needs(16, 0), 80, 32, 0), (32, 50), "blocks");
        assert_eq!(of(needs(128, 0), 80, 256, 0), (2, 25), "registers");
        assert_eq!(of(needs(255, 0), 80, 256, 0), (1, 12), "registers");
        assert_eq!(of(needs(32, 0), 80, 256, 80 << 10), (2, 25), "shared memory");
        assert_eq!(of(needs(32, 0), 90, 256, 80 << 10), (2, 25), "shared memory");
        assert_eq!(of(needs(32, 40 << 10), 90, 256, 0), (5, 62), "shared memory");
        assert_eq!(of(needs(64, 0), 86, 512, 0), (2, 66), "an architecture with fewer warps");
        assert_eq!(of(needs(255, 0), 80, 1024, 0), (0, 0), "it cannot be launched");
        assert_eq!(needs(32, 0).occupancy(75, 256, 0), None);
    }
}
