//! What a cubin says of its kernels: an ELF file whose section `.nv.info` has records of registers and of local memory. The
//! records' numbers are NVIDIA's (`EIATTR_REGCOUNT`, `EIATTR_FRAME_SIZE`), as `cuobjdump -elf` names them.

use std::collections::BTreeMap;

/// What a kernel needs of a multiprocessor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread: spilled registers, and arrays that are indexed by what only the run knows.
    pub local_bytes: u32,
    /// Bytes of shared memory of a block, as the text declares them.
    pub shared_bytes: u64,
}

const FRAME_SIZE: u8 = 0x11;
const REGCOUNT: u8 = 0x2f;

/// A section: its name, contents, and the size it has in memory.
struct Section<'c> {
    name: String,
    bytes: &'c [u8],
    size: u64,
    kind: u32,
}

fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    bytes[at..at + width].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn text(bytes: &[u8], at: usize) -> String {
    let end = bytes[at..].iter().position(|byte| *byte == 0).map_or(bytes.len(), |length| at + length);
    String::from_utf8_lossy(&bytes[at..end]).into_owned()
}

fn sections(cubin: &[u8]) -> Vec<Section<'_>> {
    let (table, size, count) = (number(cubin, 0x28, 8), number(cubin, 0x3a, 2), number(cubin, 0x3c, 2));
    let header = |at: u64| &cubin[(table + at * size) as usize..][..size as usize];
    let contents = |header: &[u8]| {
        let (offset, length) = (number(header, 24, 8) as usize, number(header, 32, 8) as usize);
        // A section without bits has a size, but no bytes.
        if number(header, 4, 4) == 8 { &cubin[0..0] } else { &cubin[offset..offset + length] }
    };
    let names = contents(header(number(cubin, 0x3e, 2)));
    (0..count)
        .map(|at| {
            let header = header(at);
            Section {
                name: text(names, number(header, 0, 4) as usize),
                bytes: contents(header),
                size: number(header, 32, 8),
                kind: number(header, 4, 4) as u32,
            }
        })
        .collect()
}

/// The kernels of a cubin by name.
pub fn resources(cubin: &[u8]) -> BTreeMap<String, Resources> {
    let sections = sections(cubin);
    let section = |name: &str| sections.iter().find(|section| section.name == name);
    let names = section(".strtab").expect("names").bytes;
    let symbols = sections.iter().find(|section| section.kind == 2).expect("symbols").bytes;
    let name_of = |symbol: u32| text(names, number(symbols, symbol as usize * 24, 4) as usize);
    let mut kernels: BTreeMap<String, Resources> = BTreeMap::new();
    let info = section(".nv.info").expect("information").bytes;
    let mut at = 0;
    while at + 4 <= info.len() {
        let (format, attribute, size) = (info[at], info[at + 1], number(info, at + 2, 2) as usize);
        at += 4;
        if format != 4 {
            continue;
        }
        if matches!(attribute, FRAME_SIZE | REGCOUNT) {
            let kernel = kernels.entry(name_of(number(info, at, 4) as u32)).or_default();
            let value = number(info, at + 4, 4) as u32;
            if attribute == REGCOUNT { kernel.registers = value } else { kernel.local_bytes = value }
        }
        at += size;
    }
    for section in &sections {
        if let Some(kernel) = section.name.strip_prefix(".nv.shared.").and_then(|name| kernels.get_mut(name)) {
            kernel.shared_bytes = section.size;
        }
    }
    kernels
}
