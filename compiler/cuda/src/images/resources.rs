//! What kernels need of a multiprocessor, read from their machine code: no device and no tool is asked.

use object::read::elf::{ElfFile64, FileHeader as _, SectionHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolIndex};
use std::collections::BTreeMap;
use std::fmt;

/// What a kernel needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory that the text declares with a size, of a block.
    pub shared_bytes: u32,
    /// Bytes of a thread's stack: arrays that have no registers, and values that were spilled.
    pub local_bytes: u32,
    /// Instructions that store a register to the stack or load it back.
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

/// ELF's number for CUDA.
const MACHINE: u16 = 190;

/// Attributes of `.nv.info`: a symbol and its number of registers, a symbol and the bytes of its frame.
const REGISTERS: u8 = 0x2f;
const FRAME: u8 = 0x11;

/// The attribute of `.nv.info.NAME` that lists notes on instructions, pairs of a kind and an address. It is not documented; the
/// instructions of kind 1 are as many as `ptxas -v` (12.9) counts spill stores and loads, and no list is there where it counts none.
const NOTES: u8 = 0x55;
const SPILL: u32 = 1;

/// The form of an attribute whose value follows its size; other forms hold two bytes in place of the size.
const SIZED: u8 = 4;

/// What a block has of shared memory before its own, on architectures whose cubins count it: from sm_90 on.
const RESERVED: u32 = 1024;

/// The needs of the kernels in a cubin, by their names. Empty where the code is none: PTX, or a file of another kind.
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
            // The same number as in .nv.info, which older compilers do not write.
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

/// The number at a place of words of four bytes.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(4 * at..4 * at + 4)?;
    Some(u32::from_le_bytes(word.try_into().ok()?))
}

/// The attributes of a `.nv.info` section that have a size: kind and value.
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

/// What a multiprocessor has, of architectures whose numbers are published (CUDA C++ Programming Guide, "Compute
/// Capabilities", technical specifications per compute capability).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Multiprocessor {
    blocks: u32,
    warps: u32,
    shared_bytes: u32,
}

const WARP: u32 = 32;
const ALL_REGISTERS: u32 = 65_536;
/// Registers are given to warps in portions of this size.
const REGISTER_PORTION: u32 = 256;
/// Shared memory is given to blocks in portions of this size, beside what the system takes of each.
const SHARED_PORTION: u32 = 128;
/// Schedulers of a multiprocessor, each with a quarter of the registers.
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

/// How full kernels make a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Blocks that are there at the same time.
    pub blocks: u32,
    /// Their warps in percent of what can be there.
    pub percent: u32,
}

impl Resources {
    /// How many blocks of `threads` threads are on a multiprocessor at the same time, where each has `dynamic_bytes` of shared memory
    /// beside what the text declares; the rules are those of CUDA's `cuda_occupancy.h`. `None`: nothing is published here of the
    /// architecture.
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

    /// One kernel with shared memory, one whose values do not fit its registers, one with an array that is indexed.
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
    fn needs_stand_in_the_machine_code() {
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
    fn what_is_no_machine_code_needs_nothing() {
        assert!(of(b"").is_empty() && of(b".version 8.0\n\0").is_empty() && of(b"\x7fELF").is_empty());
        // A host's program is ELF, too.
        let own = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
        assert!(of(&own).is_empty());
    }

    #[test]
    fn what_is_short_limits_the_blocks() {
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
