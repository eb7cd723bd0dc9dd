//! What machine code says of its kernels: the ELF file that NVRTC makes has a section `.nv.info` with attributes of each.

use std::collections::BTreeMap;

/// What a kernel needs of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of a thread's own memory: arrays that are no registers, and registers that did not fit.
    pub local_bytes: u32,
}

/// The attributes: registers of a function, and bytes of its frame.
const REGISTERS: u8 = 0x2f;
const FRAME: u8 = 0x11;

/// The format of an attribute that has bytes behind its head.
const WITH_BYTES: u8 = 4;

struct Section<'c> {
    name: String,
    kind: u32,
    link: usize,
    bytes: &'c [u8],
}

fn number(bytes: &[u8], at: usize, size: usize) -> usize {
    bytes[at..at + size].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

fn text(bytes: &[u8], at: usize) -> String {
    let end = bytes[at..].iter().position(|byte| *byte == 0).map_or(bytes.len(), |length| at + length);
    String::from_utf8_lossy(&bytes[at..end]).into_owned()
}

/// The sections of an ELF file of 64 bits.
fn sections(elf: &[u8]) -> Vec<Section<'_>> {
    const SYMBOLS_WITHOUT_BYTES: usize = 8;
    let (table, size, count, names) =
        (number(elf, 0x28, 8), number(elf, 0x3a, 2), number(elf, 0x3c, 2), number(elf, 0x3e, 2));
    let head = |at: usize| &elf[table + at * size..][..size];
    let bytes = |at: usize| match number(head(at), 4, 4) {
        SYMBOLS_WITHOUT_BYTES => &elf[..0],
        _ => &elf[number(head(at), 24, 8)..][..number(head(at), 32, 8)],
    };
    let name = |at: usize| text(bytes(names), number(head(at), 0, 4));
    (0..count)
        .map(|at| Section {
            name: name(at),
            kind: number(head(at), 4, 4) as u32,
            link: number(head(at), 40, 4),
            bytes: bytes(at),
        })
        .collect()
}

/// What each kernel of a cubin needs.
pub fn resources(cubin: &[u8]) -> BTreeMap<String, Resources> {
    const SYMBOL_TABLE: u32 = 2;
    let sections = sections(cubin);
    let symbols = sections.iter().find(|section| section.kind == SYMBOL_TABLE).expect("a table of symbols");
    let symbol = |at: usize| text(sections[symbols.link].bytes, number(symbols.bytes, at * 24, 4));
    let info = sections.iter().find(|section| section.name == ".nv.info").expect("attributes of kernels");
    let mut kernels: BTreeMap<String, Resources> = BTreeMap::new();
    let mut at = 0;
    while at + 4 <= info.bytes.len() {
        let (format, attribute, size) = (info.bytes[at], info.bytes[at + 1], number(info.bytes, at + 2, 2));
        at += 4;
        if format != WITH_BYTES {
            continue;
        }
        if size == 8 && matches!(attribute, REGISTERS | FRAME) {
            let kernel = kernels.entry(symbol(number(info.bytes, at, 4))).or_default();
            let value = number(info.bytes, at + 4, 4) as u32;
            match attribute {
                REGISTERS => kernel.registers = value,
                _ => kernel.local_bytes = value,
            }
        }
        at += size;
    }
    kernels
}
