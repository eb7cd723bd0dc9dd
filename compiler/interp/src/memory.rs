//! Typed access to the elements of buffers.

use rx_tensor::{Element, Tensor, float_of_int, int_of_float};

/// The elements of a buffer, by their representation.
#[derive(Debug)]
enum Cells<'a> {
    Bool(&'a mut [u8]),
    I8(&'a mut [i8]),
    I16(&'a mut [i16]),
    I32(&'a mut [i32]),
    I64(&'a mut [i64]),
    U8(&'a mut [u8]),
    U16(&'a mut [u16]),
    U32(&'a mut [u32]),
    U64(&'a mut [u64]),
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
    /// 16-bit floats (`float16`, `bfloat16`), as bits.
    Half(&'a mut [u16]),
    /// 4-bit integers, each in the low bits of a byte.
    Nibble(&'a mut [u8]),
    /// 8-bit and 4-bit floats, each as the bits in a byte.
    Quarter(&'a mut [u8]),
}

/// The contents and the shape of a buffer.
///
/// INVARIANT: the number of cells is the product of the extents.
#[derive(Debug)]
pub(crate) struct Memory<'a> {
    pub(crate) shape: Vec<i64>,
    element: Element,
    cells: Cells<'a>,
}

impl<'a> Memory<'a> {
    /// Creates a placeholder for a buffer that is never accessed.
    pub(crate) fn unused() -> Memory<'a> {
        Memory { shape: vec![0], element: Element::U8, cells: Cells::U8(&mut []) }
    }

    /// Creates a view of a tensor's elements.
    pub(crate) fn over(tensor: &'a mut Tensor) -> Option<Memory<'a>> {
        let (shape, element) = (tensor.shape().to_vec(), tensor.element());
        let cells = match element {
            Element::Bool => Cells::Bool(tensor.as_mut_slice()?),
            Element::I8 => Cells::I8(tensor.as_mut_slice()?),
            Element::I16 => Cells::I16(tensor.as_mut_slice()?),
            Element::I32 => Cells::I32(tensor.as_mut_slice()?),
            Element::I64 => Cells::I64(tensor.as_mut_slice()?),
            Element::U8 => Cells::U8(tensor.as_mut_slice()?),
            Element::U16 => Cells::U16(tensor.as_mut_slice()?),
            Element::U32 => Cells::U32(tensor.as_mut_slice()?),
            Element::U64 => Cells::U64(tensor.as_mut_slice()?),
            Element::F32 => Cells::F32(tensor.as_mut_slice()?),
            Element::F64 => Cells::F64(tensor.as_mut_slice()?),
            Element::F16 | Element::BF16 => Cells::Half(tensor.as_mut_slice()?),
            Element::I4 | Element::U4 => Cells::Nibble(tensor.bytes_mut()),
            Element::F8E4M3Fn | Element::F8E5M2 | Element::F4E2M1Fn => Cells::Quarter(tensor.as_mut_slice()?),
        };
        Some(Memory { shape, element, cells })
    }

    /// Returns the element at an offset as an integer. The offset must be in range.
    #[inline]
    pub(crate) fn int(&self, at: usize) -> i64 {
        match &self.cells {
            Cells::I64(cells) => cells[at],
            Cells::I32(cells) => cells[at].into(),
            Cells::Bool(cells) => i64::from(cells[at] != 0),
            Cells::I8(cells) => cells[at].into(),
            Cells::I16(cells) => cells[at].into(),
            Cells::U8(cells) => cells[at].into(),
            Cells::U16(cells) => cells[at].into(),
            Cells::U32(cells) => cells[at].into(),
            Cells::U64(cells) => cells[at] as i64,
            Cells::Nibble(cells) => self.element.wrap(cells[at].into()),
            _ => int_of_float(self.float(at), Element::I64),
        }
    }

    /// Returns the element at an offset as a float. The offset must be in range.
    #[inline]
    pub(crate) fn float(&self, at: usize) -> f64 {
        match &self.cells {
            Cells::F32(cells) => cells[at].into(),
            Cells::F64(cells) => cells[at],
            Cells::Half(cells) => self.element.float_of_bits(cells[at].into()),
            Cells::Quarter(cells) => self.element.float_of_bits(cells[at].into()),
            _ => float_of_int(self.int(at), self.element, Element::F64),
        }
    }

    /// Stores an integer at an offset, which must be in range.
    #[inline]
    pub(crate) fn set_int(&mut self, at: usize, value: i64) {
        match &mut self.cells {
            Cells::I64(cells) => cells[at] = value,
            Cells::I32(cells) => cells[at] = value as i32,
            Cells::Bool(cells) => cells[at] = u8::from(value != 0),
            Cells::I8(cells) => cells[at] = value as i8,
            Cells::I16(cells) => cells[at] = value as i16,
            Cells::U8(cells) => cells[at] = value as u8,
            Cells::U16(cells) => cells[at] = value as u16,
            Cells::U32(cells) => cells[at] = value as u32,
            Cells::U64(cells) => cells[at] = value as u64,
            Cells::Nibble(cells) => cells[at] = self.element.wrap(value) as u8,
            _ => self.set_float(at, float_of_int(value, Element::I64, self.element)),
        }
    }

    /// Stores a float at an offset, which must be in range.
    #[inline]
    pub(crate) fn set_float(&mut self, at: usize, value: f64) {
        match &mut self.cells {
            Cells::F32(cells) => cells[at] = value as f32,
            Cells::F64(cells) => cells[at] = value,
            Cells::Half(cells) => cells[at] = self.element.bits_of_float(value) as u16,
            Cells::Quarter(cells) => cells[at] = self.element.bits_of_float(value) as u8,
            _ => self.set_int(at, int_of_float(value, self.element)),
        }
    }

    /// Fills the buffer with values that represent undefined contents: NaN, `True`, or an integer that is unlikely to
    /// be a valid index.
    pub(crate) fn poison(&mut self) {
        self.fill(0x5b5b_5b5b_5b5b_5b5b, f64::NAN);
        if let Cells::Bool(cells) = &mut self.cells {
            cells.fill(1);
        }
    }

    /// Fills the buffer with zeros.
    pub(crate) fn clear(&mut self) {
        self.fill(0, 0.0);
    }

    /// Fills the buffer with the low bits of an integer, or with a float.
    fn fill(&mut self, int: i64, float: f64) {
        match &mut self.cells {
            Cells::Bool(cells) | Cells::U8(cells) | Cells::Nibble(cells) => cells.fill(int as u8),
            Cells::I8(cells) => cells.fill(int as i8),
            Cells::I16(cells) => cells.fill(int as i16),
            Cells::I32(cells) => cells.fill(int as i32),
            Cells::I64(cells) => cells.fill(int),
            Cells::U16(cells) => cells.fill(int as u16),
            Cells::U32(cells) => cells.fill(int as u32),
            Cells::U64(cells) => cells.fill(int as u64),
            Cells::F32(cells) => cells.fill(float as f32),
            Cells::F64(cells) => cells.fill(float),
            Cells::Half(cells) => cells.fill(self.element.bits_of_float(float) as u16),
            Cells::Quarter(cells) => cells.fill(self.element.bits_of_float(float) as u8),
        }
    }
}
